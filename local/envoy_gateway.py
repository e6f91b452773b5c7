"""Starts Envoy Gateway's controller as a process: its certificates are where the controller looks for them (/certs).

Runs inside the stack's own root file system, so /certs never appears on the machine.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

from srvmod.local.api import Api, ApiError
from srvmod.local.waiting import groups_established, until

CERTS = Path("/certs")
GROUPS = ("gateway.networking.k8s.io", "gateway.envoyproxy.io")


def write_certificates(api: Api, namespace: str, binary: str) -> None:
    """Let the controller's own certgen make its Secrets (once), then lay its files under /certs."""
    try:
        api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    except ApiError as error:
        if error.status != 409:
            raise
    path = f"/api/v1/namespaces/{namespace}/secrets/envoy-gateway"
    if api.get_or_none(path) is None:
        subprocess.run([binary, "certgen", "--disable-topology-injector"], check=True)
    CERTS.mkdir(exist_ok=True)
    for name, value in api.get(path)["data"].items():
        (CERTS / name).write_bytes(base64.b64decode(value))


def main() -> None:
    binary, config, applied = sys.argv[1:]
    api = Api(Path(os.environ["KUBECONFIG"]))
    # It looks once, at its start, and goes on without what isn't there yet: without SecurityPolicy no key is asked for.
    until("all CRDs to be made", Path(applied).exists)
    until(f"those of {', '.join(GROUPS)} to be served", lambda: groups_established(api, GROUPS))
    write_certificates(api, os.environ["ENVOY_GATEWAY_NAMESPACE"], binary)
    os.execv(binary, [binary, "server", "--config-path", config])


if __name__ == "__main__":
    main()
