"""Takes the seccomp profile out of a container's bundle and becomes runc: for a runc built without libseccomp.

Such a runc (built from source on a machine without libseccomp's headers) refuses every container that names a
profile. The nodes then run without system-call filters, which their README and the launcher's log say. Run as a
plain file, with the standard library alone: `without_seccomp.py RUNC ARGUMENTS...`.
"""

import itertools
import json
import os
import sys
from pathlib import Path


def strip(bundle: Path) -> None:
    """Removes the profile from the bundle's config.json."""
    file = bundle / "config.json"
    config = json.loads(file.read_text())
    if config.get("linux", {}).pop("seccomp", None) is not None:
        file.write_text(json.dumps(config))


def main(command: list[str]) -> None:
    for option, value in itertools.pairwise(command):
        if option == "--bundle":
            strip(Path(value))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
