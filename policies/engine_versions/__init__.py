"""What each pinned engine version knows: options and metric names, as tables that `extract.py` makes."""

from srvmod.policies.engine_versions.tables import DEFAULT_VERSION, Metric, Option, Table, VersionError, table, versions

__all__ = ["DEFAULT_VERSION", "Metric", "Option", "Table", "VersionError", "table", "versions"]
