"""Puts a pretended node's folders where its pod would see them, then becomes the command.

`python -m srvmod.local.nodes.agent_mounts FOLDER COMMAND...`: FOLDER/models at /models and FOLDER/serviceaccount at
the place of a pod's service account, in a mount namespace of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from srvmod.local.nodes import mounts

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MODELS = Path("/models")


def main(arguments: list[str]) -> None:
    folder, *command = arguments
    mounts.own_namespace()
    for name, target in (("models", MODELS), ("serviceaccount", ACCOUNT)):
        target.mkdir(parents=True, exist_ok=True)
        mounts.bind(Path(folder) / name, target)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
