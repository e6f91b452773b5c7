"""Pulumi's LanguageRuntime: programs and policy packs in Python, as child processes that end with this one."""
# ruff: noqa: N802 - the protocol names its calls

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2 as lp
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

VERSION = "0.0.0-srvmod"
REPORTED = 32
"""Exit status of a program that has told the engine itself what went wrong."""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs what the engine asks for with this interpreter; `end` stops all of it."""

    def __init__(self, engine: str = "", root: str = "") -> None:
        self.engine = engine
        self.root = root
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._over = False

    # -- about itself -------------------------------------------------------------------------------------------
    def Handshake(self, request: Any, context: Any) -> Any:
        self.engine, self.root = request.engine_address, request.root_directory or self.root
        return lp.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:
        """None: the plugins of this project are found on PATH, and nothing may be downloaded."""
        return lp.GetRequiredPackagesResponse()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:
        return lp.GetRequiredPluginsResponse()

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:
        return lp.RuntimeOptionsResponse()

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:
        """Nothing to do: make has installed them."""
        return iter(())

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:
        from importlib.metadata import distributions

        found = sorted((d.metadata["Name"], d.version) for d in distributions())
        return lp.GetProgramDependenciesResponse(
            dependencies=[lp.DependencyInfo(name=name, version=version) for name, version in found]
        )

    def About(self, request: Any, context: Any) -> Any:
        return lp.AboutResponse(
            executable=sys.executable,
            version=platform.python_version(),
            metadata={"host": "srvmod's language host for tests and the local stack"},
        )

    def Cancel(self, request: Any, context: Any) -> Any:
        self.end()
        return empty_pb2.Empty()

    # -- programs -----------------------------------------------------------------------------------------------
    def Run(self, request: Any, context: Any) -> Any:
        program = Path(request.info.program_directory or request.pwd) / (request.info.entry_point or ".")
        run = {
            "pwd": request.pwd or str(program),
            "program": str(program),
            "args": list(request.args),
            "monitor": request.monitor_address,
            "engine": self.engine,
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization or "organization",
            "root": request.info.root_directory or self.root or None,
            "parallel": request.parallel,
            "dryRun": request.dryRun,
            "config": dict(request.config),
            "secrets": list(request.configSecretKeys),
        }
        argv = [sys.executable, "-P", "-u", str(Path(__file__).with_name("program.py")), json.dumps(run)]
        with self._child(argv, request.pwd, {}, None) as child:
            context.add_callback(lambda: self._stop(child))
            code = child.wait()
            self._forget(child)
        if code == 0:
            return lp.RunResponse()
        if code == REPORTED:
            return lp.RunResponse(bail=True)
        name = signal.Signals(-code).name if code < 0 else str(code)
        return lp.RunResponse(error=f"the program {program} ended with {name}")

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:
        """A plugin written in Python: a policy pack (kind analyzer), or a component package."""
        folder = request.info.program_directory or request.program
        if request.kind == "analyzer":
            argv = [sys.executable, "-P", "-u", "-m", "pulumi.policy", *request.args, folder]
        else:
            argv = [sys.executable, "-P", "-u", folder, *request.args]
        extra = dict(entry.split("=", 1) for entry in request.env)
        child = self._child(argv, request.pwd or folder, extra, subprocess.PIPE)
        context.add_callback(lambda: self._stop(child))
        errors = threading.Thread(target=self._drain, args=(child,), daemon=True)
        errors.start()
        assert child.stdout is not None
        for line in child.stdout:
            yield lp.RunPluginResponse(stdout=line)
        code = child.wait()
        self._forget(child)
        yield lp.RunPluginResponse(exitcode=code)

    def _drain(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stderr is not None
        for line in child.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()

    # -- children -----------------------------------------------------------------------------------------------
    def _child(self, argv: Sequence[str], cwd: str, extra: dict[str, str], pipe: int | None) -> subprocess.Popen[bytes]:
        """A child in a group of its own: on Ctrl-C the engine, not the terminal, decides when it ends."""
        with self._lock:
            if self._over:
                raise RuntimeError("this language host is ending")
            child = subprocess.Popen(
                argv, cwd=cwd or None, env={**os.environ, **extra}, stdout=pipe, stderr=pipe, start_new_session=True
            )
            self._children.add(child)
        return child

    def _forget(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._children.discard(child)

    def _stop(self, child: subprocess.Popen[bytes], wait_s: float = 2.0) -> None:
        if child.poll() is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                return
            try:
                child.wait(wait_s)
                return
            except subprocess.TimeoutExpired:
                continue

    def end(self) -> None:
        """Stop every child. Called on Cancel, on SIGINT and SIGTERM, and when the engine is gone."""
        with self._lock:
            self._over = True
            children = list(self._children)
        for child in children:
            self._stop(child)
