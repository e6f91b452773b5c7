"""What `local up` says on a machine or in a folder that can't hold the stack; nothing is started.

The machine is made unfit for one command alone: by mounts in a mount namespace of the command's own, by a user
without rights, or by capabilities that are taken away.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPO, SRVMOD
from tests.acceptance.machine import left_behind, machine, processes_of

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and capabilities of a command can only be changed by root"),
]


@dataclass(frozen=True)
class Unfit:
    """A machine that lacks something. `script` prepares it in "$1" (an empty folder) and `state` lies in there."""

    name: str
    says: tuple[str, ...]
    script: str = "true"
    prefix: str = ""
    state: str = "state"


CASES = [
    Unfit(
        "no root",
        ("not root (uid 65534)", "namespaces, mounts and cgroups", "sudo --preserve-env"),
        prefix="setpriv --reuid=65534 --regid=65534 --clear-groups",
    ),
    Unfit(
        "no space",
        ("{folder} has 67,108,864 bytes free, 6,000,000,000 bytes are needed", "SRVMOD_STATE=/path"),
        "mount -t tmpfs -o size=64m small $1",
    ),
    Unfit(
        "read-only",
        ("{folder} can't be written to", "SRVMOD_STATE=/path"),
        "mount -t tmpfs -o ro,size=8g fixed $1",
    ),
    Unfit(
        "noexec",
        ("running programs from the state folder ({folder})", "mount it without noexec"),
        "mount -t tmpfs -o noexec,size=8g data $1",
    ),
    Unfit(
        "on another overlay",
        ("an overlay on the state folder's file system ({folder}/m, overlay)", "put the state folder on ext4 or xfs"),
        "mount -t tmpfs -o size=8g t $1 && cd $1 && mkdir l u w m && "
        "mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w m",
        state="m/state",
    ),
    Unfit("a file", ("{folder}/state is a file", "SRVMOD_STATE=/path"), "touch $1/state"),
    Unfit(
        "path too long",
        ("bytes, at most 81 will do", "local/run/supervisor.sock", "SRVMOD_STATE=/path"),
        state="x" * 81,
    ),
    Unfit(
        "no namespaces",
        ("own network, mount and pid namespaces can't be had", "run it privileged"),
        prefix="setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin",
    ),
    Unfit(
        "no network devices",
        ("bridge and veth interfaces", "modprobe bridge veth"),
        prefix="setpriv --bounding-set=-net_admin --inh-caps=-net_admin",
    ),
    Unfit(
        "no overlay",
        ("the kernel has no overlay file system", "modprobe overlay"),
        "grep -v overlay /proc/filesystems > $1/known && mount --bind $1/known /proc/filesystems && "
        "if [ -d /lib/modules ]; then mount -t tmpfs none /lib/modules; fi",
    ),
    Unfit("no cgroups", ("/sys/fs/cgroup isn't mounted",), "mount -t tmpfs -o ro none /sys/fs/cgroup"),
    Unfit(
        "cgroups of somebody else",
        ("a cgroup of the stack's own can't be had", "Read-only file system", "--cgroupns=host"),
        "for tree in $(awk '$5 ~ /^.sys.fs.cgroup/ {print $5}' /proc/self/mountinfo); "
        "do mount -o remount,bind,ro $tree; done",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_unfit_machine_is_named_before_anything_starts(case: Unfit, tmp_path: Path) -> None:
    before = machine(tmp_path / case.state)
    script = f'set -e; {case.script}; cd {REPO}; export SRVMOD_STATE="$1/{case.state}"; shift; exec {case.prefix} "$@"'
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), *SRVMOD, "local", "up"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    said = " ".join(result.stderr.split())
    assert result.returncode == 1, said
    for words in case.says:
        assert words.format(folder=tmp_path) in said, said
    assert "fix:" in said
    assert "Traceback" not in said
    assert not left_behind(before, tmp_path / case.state)
    assert not (tmp_path / case.state / "local").exists()


@pytest.mark.parametrize("inodes", [22, 60] if os.environ.get("SRVMOD_FULL") else [22])
def test_a_disk_that_fills_later_is_named(inodes: int, tmp_path: Path) -> None:
    """It passes the check, and has no inodes left while images are packed (22) or the control plane starts (60)."""
    before = machine(tmp_path / "state")
    script = (
        'mount -t tmpfs -o size=8g,nr_inodes=@ few "$1"; export SRVMOD_STATE="$1/state"; shift; '
        'timeout 300 "$@" up; code=$?; "$@" status; "$@" down; exit $code'
    ).replace("@ few", f"{inodes} few")
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), *SRVMOD, "local"],
        cwd=REPO,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    said = " ".join(result.stderr.split())
    assert result.returncode == 1, said
    assert "no space left" in said.lower()
    assert f"{tmp_path}/state has" in said
    assert "inodes (files) free" in said
    assert "make room there" in said
    assert "Traceback" not in said
    assert ("no stack" if inodes < 60 else "no space left") in result.stdout.lower()
    assert not processes_of(tmp_path / "state")
    assert not left_behind(before, tmp_path / "state")


def test_status_of_roots_stack_says_that_it_needs_root(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "local" / "run").mkdir(parents=True)
    (state / "local" / "run" / "facts.json").write_text("{}")
    state.chmod(0o700)
    tmp_path.chmod(0o755)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o011)
    result = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *SRVMOD, "local", "status"],
        cwd=REPO,
        env={**os.environ, "SRVMOD_STATE": str(state)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert result.returncode == 1
    assert "not root (uid 65534)" in result.stderr
    assert "facts.json: Permission denied" in result.stderr
