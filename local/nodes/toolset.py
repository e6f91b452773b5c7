"""The programs that a node runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from srvmod.tools import ToolError, find

NAMES = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "runc", "cni", "pretend-gpu-plugin")


@dataclass(frozen=True)
class Toolset:
    """Absolute paths of the programs of a node. `cni` is the folder of the CNI plugins."""

    containerd: Path
    shim: Path
    ctr: Path
    kubelet: Path
    runc: Path
    cni: Path
    gpu_plugin: Path

    @classmethod
    def find(cls) -> Toolset:
        """The pinned programs. Raises ToolError that names the first one that isn't there."""
        found: dict[str, Path] = {}
        for name in NAMES:
            path = find(name)
            if path is None:
                raise ToolError(f"{name}: not on PATH and not built yet", f"run `srvmod tools {name}`")
            found[name] = path
        return cls(
            containerd=found["containerd"],
            shim=found["containerd-shim-runc-v2"],
            ctr=found["ctr"],
            kubelet=found["kubelet"],
            runc=found["runc"],
            cni=found["cni"],
            gpu_plugin=found["pretend-gpu-plugin"],
        )

    @property
    def search_path(self) -> str:
        """PATH of containerd and kubelet: containerd finds its shim there, the kubelet calls mount."""
        ours = [path.parent for path in (self.shim, self.runc)]
        system = [Path(found).parent for name in ("mount", "umount") if (found := shutil.which(name))]
        return ":".join(dict.fromkeys(str(folder) for folder in [*ours, *system, Path("/usr/sbin"), Path("/sbin")]))

    def runc_has_seccomp(self) -> bool:
        """Whether this runc can apply system-call filters; one built without libseccomp refuses containers with any."""
        answer = subprocess.run([str(self.runc), "features"], capture_output=True, text=True, check=False)
        # versions before 1.1 don't know the command; distributions built those with libseccomp
        return answer.returncode != 0 or bool(
            json.loads(answer.stdout).get("linux", {}).get("seccomp", {}).get("enabled")
        )
