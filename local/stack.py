"""The local stack as its user sees it: up, status, down. Runs on the host's side; everything else runs inside."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from srvmod.local import facts, namespace
from srvmod.local.errors import LocalError, low_disk
from srvmod.local.kubeconfig import write_kubeconfig
from srvmod.local.locking import locked
from srvmod.local.nodes.view import components as node_processes
from srvmod.local.paths import State
from srvmod.local.pki import Authority
from srvmod.local.pulumi_cli import STACK, Pulumi, ResourceLines, end_engines, environment

Progress = Callable[[str, str], None]
"""Called with (step, what happens now)."""


class LocalStack:
    """One stack in one state folder."""

    def __init__(self, state: State, progress: Progress) -> None:
        self.state, self.progress = state, progress

    # -- up ---------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Bring everything up, or repair what is down; idempotent."""
        from srvmod.local import seed
        from srvmod.tools import ensure

        self._check_machine()
        with locked(self.state, "up"):
            self.progress("tools", "from PATH, or built once into .tools")
            tools = ensure(progress=lambda line: self.progress("tools", line))
            found = self._namespace(tools)
            self._await_healthy(only=("kube-apiserver",))
            self._apply_crds()
            # Karpenter starts after the program's first objects, Envoy Gateway once the CRDs are served
            self._await_healthy(but=("karpenter", "envoy-gateway"))
            seed.aws(found)
            self._program(found, tools)
            self._await_healthy()
            self._await_engines(found.supervisor_pid)

    def _check_machine(self) -> None:
        """Raises LocalError with everything that this machine and the state folder lack."""
        if (engine := os.environ.get("SRVMOD_ENGINE", "simulated")) != "simulated":
            raise LocalError(
                f"SRVMOD_ENGINE={engine}: the local stack has no image of it; allowed: simulated",
                "unset SRVMOD_ENGINE",
            )
        from srvmod.local.nodes import check_host

        found = facts.load(self.state.facts_file)
        if found and found.alive():
            # it holds the stack already, and a mended one needs little more than it has
            if disk := low_disk(self.state.root):
                raise LocalError(disk, "free some there and run `srvmod local up` again; what runs was left as it is")
            return
        place = next(folder for folder in (self.state.root, *self.state.root.parents) if folder.exists())
        if not os.statvfs(place).f_blocks:
            # the kernel's own (/proc, /sys), or a tmpfs without a limit: to speak of missing bytes would mislead
            try:
                self.state.make()
            except OSError as error:
                raise LocalError(
                    f"the state folder {self.state.root} can't be made: {error.strerror}",
                    "choose a folder on a disk of this machine: SRVMOD_STATE=/path",
                ) from error
        problems = check_host(self.state.root)
        if problems:
            raise LocalError(
                "this machine can't hold the stack:\n" + "\n".join(f"  - {p}" for p in problems),
                "mend the lines above; nothing was started",
            )

    def _namespace(self, tools: Mapping[str, Path]) -> facts.Facts:
        found = facts.load(self.state.facts_file)
        if found and found.alive():
            namespace.await_answer(self.state, found)
            restarted = namespace.ask(self.state, "repair")["restarted"]
            self.progress(
                "control plane", f"running; restarted {', '.join(restarted)}" if restarted else "already running"
            )
        else:
            found = self._new_namespace(tools)
        # again each time: an earlier `up` may have been ended before it
        authority = Authority(self.state.pki)
        cert, key = authority.issue("admin", "srvmod-local-admin", ("system:masters",))
        write_kubeconfig(self.state.kubeconfig, f"https://127.0.0.1:{found.api_port}", authority.cert_file, cert, key)
        return found

    def _new_namespace(self, tools: Mapping[str, Path]) -> facts.Facts:
        from srvmod.local.nodes import prepare

        if self.state.facts_file.exists() or namespace.holders(self.state):
            self.progress("control plane", "the last stack ended without `down`: clearing what it left")
            self._clear()
            self.state.make()
        self.progress("images", "packing from local files")
        prepare(self.state.root, tools, progress=lambda line: self.progress("images", line))
        token = secrets.token_urlsafe(32)
        _private(self.state.token_file, token)
        _private(self.state.pki / "tokens.csv", f'{token},srvmod-admin,srvmod-admin,"system:masters"\n')
        self.progress("control plane", "starting in namespaces of its own")
        return namespace.start(
            self.state,
            tools,
            secrets.token_hex(3),
            lambda line: self.progress("ports", line),
        )

    def components(self, *, fresh: bool = False) -> list[dict[str, Any]]:
        return namespace.ask(self.state, "status", fresh=fresh)["components"]

    def _await_healthy(
        self, *, only: tuple[str, ...] = (), but: tuple[str, ...] = (), timeout_seconds: float = 120
    ) -> None:
        deadline, waiting = time.monotonic() + timeout_seconds, ""
        while True:
            # what was heard last may be older than a process's death, so nothing counts as healthy before it is asked
            sick = self._sick(only, but, fresh=False) or self._sick(only, but, fresh=True)
            if not sick:
                return
            final = [c for c in sick if c["final"]]
            if final or time.monotonic() > deadline:
                detail = "\n".join(f"  - {c['name']}: {c['problem']}" for c in final or sick)
                raise LocalError(
                    f"not healthy:\n{detail}",
                    f"mend what the lines name and run `srvmod local up` again (logs: {self.state.logs}); "
                    "`srvmod local down` clears everything",
                )
            if any(c["stuck"] for c in sick):
                restarted = namespace.ask(self.state, "repair")["restarted"]
                self.progress("control plane", f"didn't answer any more; restarted {', '.join(restarted)}")
            names = ", ".join(c["name"] for c in sick)
            if names != waiting:
                self.progress("control plane", f"waiting for {names}")
                waiting = names
            time.sleep(0.2)

    def _sick(self, only: tuple[str, ...], but: tuple[str, ...], *, fresh: bool) -> list[dict[str, Any]]:
        asked = [c for c in self.components(fresh=fresh) if c["name"] not in but and (not only or c["name"] in only)]
        return [c for c in asked if not c["healthy"]]

    def _apply_crds(self) -> None:
        from srvmod.local.crds import apply

        self.progress("CRDs", "Karpenter, Gateway API, Envoy Gateway, KEDA, Prometheus operator")
        apply(self.state)

    def _program(self, found: facts.Facts, tools: Mapping[str, Path]) -> None:
        from srvmod.local import seed

        self.progress("pulumi up", "the program of every environment, stack local")
        pulumi = self.pulumi(found, tools)
        pulumi.select()
        seeder = seed.WeightsSeeder(found, self.state, self.progress)
        seeder.start()
        try:
            pulumi.run("up", "--yes", "--skip-preview", "--stack", STACK, on_line=ResourceLines(self.progress))
        finally:
            seeder.over.set()
        seeder.finish()

    def _await_engines(self, holder: int, timeout_seconds: float = 600) -> None:
        """Until every engine that the Deployment asks for is ready and every node's processes run.

        `holder` is the process of the stack's namespaces. What is awaited is told as progress.
        """
        from srvmod.local.cluster_view import ClusterView, ready_engines

        cluster, deadline = ClusterView(self.state.kubeconfig), time.monotonic() + timeout_seconds
        while True:
            asked, seen = cluster.engines_asked(), cluster.nodes()
            wanted, ready = asked.count if asked else 0, ready_engines(seen)
            # the API server notices a dead kubelet only after its lease has run out
            down = [p["name"] for p in node_processes(self.state.root, facts.inner_pids(holder)) if not p["healthy"]]
            if ready >= wanted and not down:
                return
            words = [f"{ready} of {wanted} engines ready", *(f"{name} is started again" for name in down)]
            for node in seen:
                stage = (
                    "engines starting" if node["weightsReady"] else "filling weights" if node["ready"] else "booting"
                )
                words.append(f"{node['name']}: {stage}")
            words += cluster.launches()
            if problem := cluster.node_class_problem():
                words.append(problem)
            self.progress("engines", "; ".join(words))
            if time.monotonic() > deadline:
                raise LocalError(
                    f"engines weren't ready within {timeout_seconds:.0f} s: {'; '.join(words)}",
                    f"`srvmod local status` shows what isn't ready; logs: {self.state.logs}; `srvmod local up` goes on",
                )
            time.sleep(0.5)

    def outputs(self) -> dict[str, object]:
        """The stack's outputs, secrets masked. Raises LocalError when there is no running stack."""
        from srvmod.tools import ensure

        found = facts.load(self.state.facts_file)
        if found is None:
            raise LocalError("no local stack", "run `srvmod local up`")
        return self.pulumi(found, ensure(["pulumi"])).outputs()

    def pulumi(self, found: facts.Facts, tools: Mapping[str, Path]) -> Pulumi:
        from srvmod.tools import BIN

        return Pulumi(tools["pulumi"], environment(self.state, found, BIN), self.state.logs / "pulumi.log")

    # -- status -----------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What is true now, asked from the parts themselves. `running` is False when there is no stack."""
        from srvmod.local.status import status

        return status(self.state)

    # -- down -------------------------------------------------------------------------------------------------

    def down(self) -> bool:
        """End the stack and remove everything but caches and the last logs. Returns whether there was one."""
        with locked(self.state, "down"):
            there = self.state.facts_file.exists()
            return self._clear() or there

    def _clear(self) -> bool:
        """Returns whether processes had to be ended."""
        from srvmod.local.nodes import cleanup

        self.progress("processes", "ending")
        end_engines(self.state.pulumi_backend)
        ended = namespace.end(self.state)
        self.progress("cgroups and mounts", "removing")
        cleanup(self.state.root)
        # a `down` without a stack must not take the logs of the last one away
        if self.state.logs.exists() and any(self.state.logs.iterdir()):
            shutil.rmtree(self.state.last_logs, ignore_errors=True)
            self.state.logs.rename(self.state.last_logs)
        shutil.rmtree(self.state.live, ignore_errors=True)
        return ended


def _private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
