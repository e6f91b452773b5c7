"""Imports the packed images into one node's containerd."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from srvmod.local.nodes.images.pack import Image
from srvmod.local.nodes.paths import CONTAINERD_SOCKET

# The kubelet never removes a pinned image; it couldn't pull it again.
PINNED = "io.cri-containerd.pinned=pinned"


class ImportingError(Exception):
    """containerd refused an image; the message names it and says what containerd said."""


class Importer:
    """`ctr` is the command that runs ctr on the node; `store` is containerd's folder.

    What was imported is kept beside the store, for as long as the store lives.
    """

    def __init__(self, ctr: Sequence[str], store: Path) -> None:
        self._command = [*ctr, "--address", str(CONTAINERD_SOCKET), "--namespace", "k8s.io", "images"]
        self._record = store.parent / "images.json"

    def bring(self, images: Sequence[Image]) -> list[str]:
        """Imports what is missing or has changed; returns those images' names."""
        imported = self._imported() if self._record.exists() else {}
        present = set(self._run("list", "--quiet").split()) if imported else set()
        changed = []
        for image in images:
            if image.name in present and imported.get(image.name) == image.fingerprint:
                continue
            self._run("import", str(image.archive))
            self._run("label", image.name, PINNED)
            imported[image.name] = image.fingerprint
            changed.append(image.name)
            partial = self._record.with_suffix(".new")
            partial.write_text(json.dumps(imported, indent=1))
            partial.replace(self._record)
        return changed

    def _imported(self) -> dict[str, str]:
        return json.loads(self._record.read_text())

    def _run(self, *arguments: str) -> str:
        answer = subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise ImportingError(f"ctr images {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout
