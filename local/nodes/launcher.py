"""Gives Karpenter's Node objects to machines: the first p5 nodes to real slots, later ones to kwok.

On AWS an instance boots and its kubelet registers the Node; here Karpenter's kwok build writes the Node object and
this process starts (or pretends) the machine behind it, and switches it off when the Node is gone. It may be killed
at any time: a new one finds the running nodes by their records and pid files.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from srvmod.local.api import Api, ApiError, Mirror
from srvmod.local.nodes import allocations, config
from srvmod.local.nodes.assignment import PRETENDED, decide, in_order, is_pretended
from srvmod.local.nodes.images.pack import Image
from srvmod.local.nodes.pretended import PretendedNodes
from srvmod.local.nodes.slot import Occupant, RealNode
from srvmod.local.nodes.userdata import kubelet_settings

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
JOB_RETRY_SECONDS = 2.0
RESTART_SECONDS = 5.0  # as RestartSec of the kubelet's unit on EKS
STALLED_SECONDS = 15.0
LEFT_OUT_ANNOTATION = "srvmod.dev/kubelet-left-out"
"""On a real node: kubelet settings of the pool that can't work on pretended hardware."""
DEFAULT_KUBELET = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod"}
"""For a Node without an EC2NodeClass, as tests make it."""


class Machine:
    """One slot and what is going on in it. Slow work runs on the slot's own thread, one job at a time."""

    def __init__(self, node: RealNode) -> None:
        self.node = node
        self.holder: tuple[str, str] | None = None
        self.ready = False
        self.problem = ""
        self._jobs = ThreadPoolExecutor(1, f"slot-{node.slot.number}")
        self._job: Future[None] | None = None
        self._dead_since: dict[str, float] = {}
        self.seen_checkpoint = 0

    @property
    def busy(self) -> bool:
        return self._job is not None and not self._job.done()

    def submit(self, what: str, job: Callable[[], None]) -> None:
        """Runs the job; an error is logged and kept as `problem`, and a later tick finds out what to do."""

        def guarded() -> None:
            try:
                job()
                self.problem = ""
            except Exception as error:
                self.problem = f"slot {self.node.slot.number}: {what}: {error}"
                log.exception("slot %d: %s failed", self.node.slot.number, what)
                time.sleep(JOB_RETRY_SECONDS)

        self._job = self._jobs.submit(guarded)

    def overdue(self) -> bool:
        """Whether a process has been dead for `RESTART_SECONDS`."""
        now = time.monotonic()
        dead = {daemon.name for daemon in self.node.dead()}
        for name in dead - self._dead_since.keys():
            log.warning("%s is dead; it starts again in %.0f s", name, RESTART_SECONDS)
        self._dead_since = {name: self._dead_since.get(name, now) for name in dead}
        return any(now - since >= RESTART_SECONDS for since in self._dead_since.values())


class Launcher:
    """Watches Nodes and keeps `machines` and `pretended` in step with them."""

    def __init__(
        self, api: Api, machines: Sequence[RealNode], images: Sequence[Image], pretended: PretendedNodes
    ) -> None:
        self.api = api
        self.machines = [Machine(node) for node in machines]
        self.images = images
        self.pretended = pretended
        self.last_tick = 0.0
        self._changed = threading.Event()
        # Its last known Nodes stay: an API server that is away doesn't switch machines off.
        self.nodes = Mirror(api, "/api/v1/nodes", self._changed.set)

    # --- state ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Works until the process ends."""
        for machine in self.machines:
            occupant = machine.node.occupant()
            machine.holder = (occupant.name, occupant.uid) if occupant else None
            machine.submit("getting ready", lambda machine=machine: self._get_ready(machine))
        self.nodes.start()
        while True:
            if self.nodes.synced:
                self.tick()
            self._changed.wait(TICK_SECONDS)
            self._changed.clear()

    def problem(self) -> str:
        """Why the launcher isn't healthy; empty when it is."""
        if self.nodes.problem:
            return f"Nodes can't be watched: {self.nodes.problem}"
        if time.monotonic() - self.last_tick > STALLED_SECONDS:
            return f"no progress for more than {STALLED_SECONDS:.0f} s"
        return next((machine.problem for machine in self.machines if machine.problem), "")

    # --- one round -----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Compares what is with what should be, and starts the jobs that bring them together."""
        nodes = self.nodes.objects
        idle = [machine for machine in self.machines if not machine.busy and machine.ready]
        for machine in self.machines:
            if not machine.busy and not machine.ready:
                machine.submit("getting ready", lambda machine=machine: self._get_ready(machine))
        waiting = sum(1 for machine in self.machines if not machine.ready and machine.holder is None)
        in_work = [machine.holder[0] for machine in self.machines if machine.holder and machine not in idle]
        decision = decide(nodes, {machine.node.slot.number: machine.holder for machine in idle}, waiting, in_work)
        by_number = {machine.node.slot.number: machine for machine in idle}
        for number in decision.release:
            self._release(by_number[number])
        for number, name in decision.occupy.items():
            self._occupy(by_number[number], nodes[name])
        for name in decision.pretend:
            self._mark_pretended(name)
        for machine in idle:
            if machine.holder and not machine.busy:
                self._look_after(machine)
        self.pretended.reconcile([node for node in in_order(nodes.values()) if is_pretended(node)])
        self.last_tick = time.monotonic()

    def _get_ready(self, machine: Machine) -> None:
        started = time.monotonic()
        if machine.holder is None and machine.node.occupant() is not None:
            machine.node.release()
        machine.node.prepare()
        imported = machine.node.import_images(self.images)
        machine.ready = True
        number, seconds = machine.node.slot.number, time.monotonic() - started
        log.info("slot %d is ready after %.1f s; images imported: %s", number, seconds, ", ".join(imported) or "none")
        if machine.holder is not None:
            machine.node.restart_dead()
        self._changed.set()

    def _release(self, machine: Machine) -> None:
        name = machine.holder[0] if machine.holder else ""
        log.info("slot %d: Node %s is gone, its machine is switched off", machine.node.slot.number, name)
        machine.ready, machine.holder = False, None
        machine.submit("switching off", lambda: self._get_ready(machine))

    def _occupy(self, machine: Machine, node: Mapping[str, Any]) -> None:
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        log.info("slot %d becomes the machine of Node %s", machine.node.slot.number, name)
        machine.holder = (name, uid)
        machine.seen_checkpoint = 0

        def job() -> None:
            try:
                settings, left_out = config.honoured(self._kubelet_settings(node))
                if left_out:
                    annotation = {LEFT_OUT_ANNOTATION: ",".join(left_out)}
                    self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": annotation}})
                machine.node.occupy(Occupant(name, uid, settings))
            except Exception:
                machine.holder = None  # a later round tries again
                raise

        machine.submit(f"starting {name}", job)

    def _kubelet_settings(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """What the node's EC2NodeClass says about the kubelet."""
        claims = (self.api.get_or_none("/apis/karpenter.sh/v1/nodeclaims") or {}).get("items", [])
        provider_id = node["spec"].get("providerID")
        for claim in claims:
            if provider_id and claim.get("status", {}).get("providerID") == provider_id:
                reference = claim["spec"]["nodeClassRef"]["name"]
                return kubelet_settings(self.api.get(f"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/{reference}")["spec"])
        return dict(DEFAULT_KUBELET)

    def _mark_pretended(self, name: str) -> None:
        log.info("Node %s: no free slot, kwok pretends it", name)
        try:
            mark = {PRETENDED: "true"}
            # kwok selects by the label, since it takes over Nodes that get it later; people read the annotation
            self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": mark, "labels": mark}})
        except ApiError as error:
            if error.status != 404:
                log.warning("Node %s: %s", name, error)

    def _look_after(self, machine: Machine) -> None:
        """Restarts what died, and writes the GPUs of new pods to their annotations."""
        if machine.overdue():
            machine.submit("restarting", lambda: log.info("started again: %s", ", ".join(machine.node.restart_dead())))
            return
        checkpoint = machine.node.slot.kubelet / allocations.CHECKPOINT
        changed = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        if changed != machine.seen_checkpoint:

            def job() -> None:
                if self._annotate(machine):
                    machine.seen_checkpoint = changed

            machine.submit("writing GPU annotations", job)

    def _annotate(self, machine: Machine) -> bool:
        """True when every pod of the checkpoint that still exists has its annotation."""
        if machine.holder is None:
            return False
        gpus = allocations.gpus_by_pod(machine.node.slot.kubelet)
        pods = self.api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{machine.holder[0]}")["items"]
        for pod in pods:
            meta = pod["metadata"]
            if meta["uid"] not in gpus:
                continue
            value = ",".join(map(str, gpus[meta["uid"]]))
            if (meta.get("annotations") or {}).get(allocations.ANNOTATION) != value:
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                self.api.patch(path, {"metadata": {"annotations": {allocations.ANNOTATION: value}}})
        return True
