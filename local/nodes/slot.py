"""The life of one real node: get ready, take a Node object, keep its processes running, give the slot back."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from srvmod.local.facts import BRIDGE, BRIDGE_ADDRESS
from srvmod.local.kubeconfig import write_kubeconfig
from srvmod.local.nodes import cgroups, config, hardware
from srvmod.local.nodes.images.importer import Importer
from srvmod.local.nodes.images.pack import Image
from srvmod.local.nodes.paths import CONTAINERD_SOCKET, KUBELET_ROOT, Slot
from srvmod.local.nodes.process import Daemon
from srvmod.local.nodes.toolset import Toolset
from srvmod.local.pki import Authority

log = logging.getLogger(__name__)

READY_SECONDS = 20.0  # longest time for the mounts of a node
SWEEP_SECONDS = 30.0  # longest time to end all pods of a node that is gone


@dataclass(frozen=True)
class Occupant:
    """The Node object that holds a slot. `kubelet` are the honoured settings of its user data."""

    name: str
    uid: str
    kubelet: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cluster:
    """How a kubelet reaches and trusts the API server."""

    server: str
    authority: Authority


class RealNode:
    """One slot's processes. Every method may be called again after a crash of the caller and picks up."""

    def __init__(self, slot: Slot, tools: Toolset, cluster: Cluster) -> None:
        self.slot = slot
        self.tools = tools
        self.cluster = cluster

    # --- what runs ---------------------------------------------------------------------------------------

    def holder(self) -> Daemon:
        """The process that keeps the mount namespace."""
        module = "srvmod.local.nodes.hold"
        return self._daemon(
            "node",
            [sys.executable, "-m", module, str(self.slot.state.root), str(self.slot.number)],
            inside=False,
        )

    def containerd(self) -> Daemon:
        return self._daemon(
            "containerd", [str(self.tools.containerd), "--config", str(self.slot.config / "containerd.toml")]
        )

    def gpu_plugin(self) -> Daemon:
        return self._daemon(
            "gpu-plugin",
            [
                str(self.tools.gpu_plugin),
                "--plugin-dir",
                str(KUBELET_ROOT / "device-plugins"),
                "--pretend-root",
                str(self.slot.hardware / "gpu"),
            ],
        )

    def kubelet(self, occupant: Occupant) -> Daemon:
        return self._daemon(
            "kubelet",
            [
                str(self.tools.kubelet),
                f"--config={self.slot.config / 'kubelet.json'}",
                f"--kubeconfig={self.slot.config / 'kubeconfig'}",
                f"--root-dir={KUBELET_ROOT}",
                f"--hostname-override={occupant.name}",
                f"--node-ip={self.slot.address}",
                "--v=2",
            ],
        )

    def daemons(self) -> list[Daemon]:
        """Everything that should be running now, in the order in which it is started."""
        occupant = self.occupant()
        if occupant is None:
            return [self.holder(), self.containerd()]
        return [self.holder(), self.containerd(), self.gpu_plugin(), self.kubelet(occupant)]

    def _daemon(self, name: str, command: Sequence[str], *, inside: bool = True) -> Daemon:
        component = self.slot.component(name)
        return Daemon(
            name=component,
            command=command,
            run=self.slot.state.run,
            log=self.slot.state.logs / f"{component}.log",
            enter=self._enter() if inside else (),
            env={"PATH": self.tools.search_path},
        )

    # --- life --------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Makes the slot ready for a Node: namespace, cgroup, address, containerd. Quick when it is ready."""
        hardware.write_p5(self.slot.hardware)
        # A kubelet that makes this cgroup itself gives it all its CPUs, pretended ones too, which the kernel refuses;
        # one that finds it only complains about that in an event.
        cgroups.create(f"{self.slot.cgroup}/kubepods")
        fresh = self.holder().pid() is None
        if fresh:
            self._hold()
        for folder in (self.slot.config / "cni", self.slot.kubelet / "device-plugins"):
            folder.mkdir(parents=True, exist_ok=True)
        _write(self.slot.config / "containerd.toml", config.containerd_toml(self.slot, self._runc(), self.tools.cni))
        _write(self.slot.config / "cni" / "10-srvmod.conflist", config.cni_conflist(self.slot))
        _write(
            self.slot.config / "resolv.conf",
            f"nameserver {BRIDGE_ADDRESS}\n",
        )
        _add_address(self.slot.address)
        self.containerd().start()
        if fresh:
            # A new namespace is a machine that was just switched on: what an earlier one ran is gone.
            self.remove_pods()

    def _runc(self) -> Path:
        """The runc that containerd calls: the real one, or a script before it when it can't do seccomp."""
        if self.tools.runc_has_seccomp():
            return self.tools.runc
        log.warning("runc %s has no seccomp: pods run without system-call filters", self.tools.runc)
        script = self.slot.config / "runc"
        _write(script, config.runc_script(self.tools.runc))
        script.chmod(0o755)
        return script

    def _hold(self) -> None:
        """Starts the holder and waits until its mounts are made."""
        holder = self.holder()
        log_start = holder.log.stat().st_size if holder.log.exists() else 0
        pid, deadline = holder.start(), time.monotonic() + READY_SECONDS
        while True:
            said = holder.log.read_bytes()[log_start:] if holder.log.exists() else b""
            if said.rstrip().endswith(b"ready"):
                return
            if holder.pid() != pid or time.monotonic() > deadline:
                raise RuntimeError(
                    f"node in slot {self.slot.number}: its mount namespace could not be made; see {holder.log}\n"
                    + said.decode(errors="replace").strip()
                )
            time.sleep(0.02)

    def occupy(self, occupant: Occupant) -> None:
        """Gives the slot to a Node object and starts its kubelet. Call `prepare` first."""
        authority = self.cluster.authority
        certificate, key = authority.issue(
            f"kubelet-{occupant.name}",
            f"system:node:{occupant.name}",
            ("system:nodes",),
            hosts=(self.slot.address,),
        )
        settings = config.kubelet_configuration(self.slot, authority.cert_file, certificate, key, occupant.kubelet)
        _write(self.slot.config / "kubelet.json", json.dumps(settings, indent=1))
        write_kubeconfig(self.slot.config / "kubeconfig", self.cluster.server, authority.cert_file, certificate, key)
        # Last, since from here on a restarted launcher keeps the kubelet running.
        _write(self.slot.record, json.dumps(asdict(occupant), indent=1))
        self.restart_dead()

    def dead(self) -> list[Daemon]:
        """What should run now and doesn't."""
        return [daemon for daemon in self.daemons() if daemon.pid() is None]

    def restart_dead(self) -> list[str]:
        """Starts again what should run and doesn't, as systemd does on a node; returns the names of those."""
        if self.holder().pid() is None:
            # Without its namespace nothing of the node can go on: switch it off and on again.
            self._stop_processes()
            self.prepare()
        dead = self.dead()
        for daemon in dead:
            daemon.start()
        return [daemon.name for daemon in dead]

    def occupant(self) -> Occupant | None:
        """The Node object that holds the slot, or None while it is free."""
        try:
            return Occupant(**json.loads(self.slot.record.read_text()))
        except FileNotFoundError:
            return None

    def release(self) -> None:
        """Switches the machine off: ends kubelet, pods and containerd, and empties its disks, images excepted."""
        occupant = self.occupant()
        if occupant is not None:
            self.kubelet(occupant).stop()
        self.gpu_plugin().stop()
        if self.containerd().pid() is not None:
            self.remove_pods()
        self._stop_processes()
        for folder in (self.slot.kubelet, self.slot.nvme, self.slot.pod_logs, self.slot.cni):
            shutil.rmtree(folder, ignore_errors=True)
        self.slot.record.unlink(missing_ok=True)

    def remove_pods(self) -> None:
        """Ends all pods of the slot's containerd at once. What can't be ended is logged; `_stop_processes` kills it."""
        command = [
            *self._enter(),
            str(self.tools.gpu_plugin),
            "--remove-pods",
            str(CONTAINERD_SOCKET),
            "--timeout",
            f"{SWEEP_SECONDS}s",
        ]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            log.warning("slot %d: %s", self.slot.number, answer.stderr.strip())

    def _enter(self) -> list[str]:
        """The command that runs another one in the node's mount namespace."""
        return ["nsenter", f"--mount=/proc/{self.holder().pid()}/ns/mnt", "--"]

    def import_images(self, images: Sequence[Image]) -> list[str]:
        """Brings the images into the slot's containerd; returns the names of those that weren't there."""
        return Importer([*self._enter(), str(self.tools.ctr)], self.slot.containerd).bring(images)

    def _stop_processes(self) -> None:
        occupant = self.occupant()
        if occupant is not None:
            self.kubelet(occupant).stop()
        self.gpu_plugin().stop()
        self.containerd().stop()
        left = cgroups.remove(self.slot.cgroup)
        if left:
            log.warning("slot %d: cgroups that can't be removed: %s", self.slot.number, ", ".join(map(str, left)))
        self.holder().stop()


def _write(path: Path, text: str) -> None:
    """Writes the file in one step, so that a kill leaves either the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".new")
    partial.write_text(text)
    partial.replace(path)


def _add_address(address: str) -> None:
    """Puts the node's address on the stack's bridge; does nothing when it is there."""
    command = ["ip", "-oneline", "-4", "address", "show", "dev", BRIDGE]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if f" {address}/" in answer.stdout:
        return
    if answer.returncode == 0:
        command = ["ip", "address", "add", f"{address}/32", "dev", BRIDGE]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(
            f"node address {address} on {BRIDGE}: {answer.stderr.strip()}. "
            "Nodes start inside the stack's network namespace, after its bridge was made"
        )
