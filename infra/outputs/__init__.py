"""What other teams read from the stack."""

from srvmod.infra.outputs.contract import CONTRACT_VERSION, Outputs
from srvmod.infra.outputs.publish import outputs, publish

__all__ = ["CONTRACT_VERSION", "Outputs", "outputs", "publish"]
