"""Where the local stack keeps everything: one folder, so that ending it leaves nothing behind elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
"""The checkout that this module belongs to."""


@dataclass(frozen=True)
class State:
    """Paths of one local stack. `root` survives `down` (caches, last logs); `live` does not."""

    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def live(self) -> Path:
        return self.root / "local"

    @property
    def run(self) -> Path:
        return self.live / "run"

    @property
    def logs(self) -> Path:
        return self.live / "logs"

    @property
    def pki(self) -> Path:
        return self.live / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.live / "kubeconfig"

    @property
    def api_key_file(self) -> Path:
        return self.live / "api-key"

    @property
    def aws_journal(self) -> Path:
        """Every change of the simulated account, played again when its process starts again."""
        return self.live / "aws.journal"

    @property
    def ports_file(self) -> Path:
        """The loopback ports of the last start; they outlive `down`, so that the next start has the same."""
        return self.root / "ports.json"

    @property
    def token_file(self) -> Path:
        return self.pki / "eks-token"

    @property
    def pulumi_backend(self) -> Path:
        return self.live / "pulumi"

    @property
    def pulumi_home(self) -> Path:
        return self.cache / "pulumi-home"

    @property
    def facts_file(self) -> Path:
        """facts.json: ports and identifiers that `up` chose (see Facts)."""
        return self.run / "facts.json"

    @property
    def crds_applied(self) -> Path:
        """There once all CRDs have been made."""
        return self.run / "crds-applied"

    @property
    def lock_file(self) -> Path:
        return self.root / "up.lock"

    @property
    def socket(self) -> Path:
        return self.run / "supervisor.sock"

    @property
    def last_logs(self) -> Path:
        return self.root / "last-logs"

    def make(self) -> None:
        """Create the folders, readable by their owner only (keys and tokens live here)."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.cache, self.live, self.run, self.logs, self.pki, self.pulumi_backend, self.pulumi_home):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def default_state() -> State:
    """The state folder: SRVMOD_STATE, else .srvmod in the checkout."""
    return State(Path(os.environ.get("SRVMOD_STATE", REPO / ".srvmod")).resolve())
