"""Pulumi's protocol messages without the cost of the whole SDK.

Importing any module of `pulumi` runs its package `__init__`, which takes half a second that a plugin doesn't need.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType


def light() -> None:
    """Let `pulumi.runtime.proto` be imported by itself. Only for programs that never use the rest of the SDK."""
    if "pulumi" in sys.modules:
        return
    found = find_spec("pulumi")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("pulumi isn't installed: make puts it into .venv (extra `deploy`)")
    root = found.submodule_search_locations[0]
    for name, path in (("pulumi", root), ("pulumi.runtime", f"{root}/runtime")):
        package = ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
