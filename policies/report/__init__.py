"""Reports of a check, one module per format."""

from srvmod.policies.report.formats import FORMATS, render

__all__ = ["FORMATS", "render"]
