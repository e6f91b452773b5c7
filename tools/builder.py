"""Finds the pinned tools on PATH or builds them, two at a time at most, each once."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path

from srvmod.tools import golang, gomod, paths, probe, stamps
from srvmod.tools.catalogue import LOCAL_STACK, Tool, select
from srvmod.tools.compile import Compiler
from srvmod.tools.errors import ToolError
from srvmod.tools.locking import only_run, terminated_as_interrupt

Progress = Callable[[str], None]
AT_ONCE = 2
SILENCE_S = 30.0  # a tool that is still being built says so this often
BYTES_PER_TOOL = 300_000_000  # the largest binary twice (new and old), rounded up


def find(name: str) -> Path | None:
    """The tool if it can be used at once (built earlier, or on PATH at the pinned version), else None."""
    (tool,) = select([name])
    found = locate(tool)
    return found[0] if found else None


def locate(tool: Tool) -> tuple[Path, str] | None:
    """Where a usable tool lies and how it came: "built" or "path"."""
    if stamps.read(tool) is not None:
        return tool.path, "built"
    if tool.on_path:
        candidate = shutil.which(tool.name, path=_foreign_path())
        if candidate is not None and _fits(tool, candidate, Path(candidate).stat().st_mtime_ns):
            return Path(candidate), "path"
    return None


def _foreign_path() -> str:
    """PATH without our own bin folder: what lies there counts only with its stamp."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry and Path(entry).resolve() != paths.BIN.resolve())


@lru_cache
def _fits(tool: Tool, candidate: str, _changed_ns: int) -> bool:
    """Whether the binary on PATH answers with a version that will do; one that can't be run doesn't."""
    paths.SCRATCH.mkdir(parents=True, exist_ok=True)
    try:
        return probe.accepts(tool, probe.version_of(tool, Path(candidate), paths.SCRATCH))
    except ToolError:
        return False


def ensure(names: Iterable[str] = LOCAL_STACK, progress: Progress | None = None) -> dict[str, Path]:
    """The path of every named tool, built first where it isn't there yet.

    `progress` is given one line per event ("kubelet 1.36.3: building, 30 s"), never from two threads at once. A
    second run waits for the first and then builds only what is still missing; Ctrl-C and SIGTERM end the compilers
    and leave no half file. Raises ToolError that names every tool that failed, after the others are done.
    """
    tools = select(names)
    say = _one_at_a_time(progress)
    missing = [tool for tool in tools if locate(tool) is None]
    if missing:
        _check(missing)
        with only_run(say):
            # Another run may have built them while this one waited.
            missing = [tool for tool in missing if locate(tool) is None]
            if missing:
                _build(missing, say)
    found = {tool.name: locate(tool) for tool in tools}
    lost = [name for name, at in found.items() if at is None]
    if lost:
        raise ToolError(
            f"built, but changed by something else right after: {', '.join(lost)} in {paths.TOOLS}",
            "end whatever writes into that folder and run `srvmod tools`",
        )
    return {name: at[0] for name, at in found.items() if at is not None}


def _one_at_a_time(progress: Progress | None) -> Progress:
    lock = threading.Lock()

    def say(line: str) -> None:
        if progress is not None:
            with lock:
                progress(line)

    return say


def _check(missing: list[Tool]) -> None:
    """Everything that can be known to fail before an hour's work: Go, a C compiler, the folder, space."""
    newest = max(missing, key=lambda tool: golang.numbers(_go(tool)))
    golang.require(_go(newest), f"{newest.name} {newest.version}, which isn't on PATH at that version,")
    compiler = os.environ.get("CC", "gcc").split()[0]
    for tool in missing:
        if tool.cgo and shutil.which(compiler) is None:
            raise ToolError(
                f"{tool.name} {tool.at_least or tool.version}: not on PATH, and building it needs a C compiler; "
                f"{compiler} was not found",
                f"install {tool.name} (Debian: apt install {tool.name}) or a C compiler (apt install gcc libc6-dev)",
            )
    try:
        paths.SCRATCH.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(paths.SCRATCH).free
    except OSError as error:
        raise ToolError(
            f"{paths.TOOLS}: can't be made ({error.strerror})", "set SRVMOD_TOOLS to a writable folder"
        ) from error
    need = BYTES_PER_TOOL * len(missing)
    if free < need:
        raise ToolError(
            f"{paths.TOOLS}: {free / 1e9:.1f} GB free, about {need / 1e9:.1f} GB needed for {len(missing)} tools",
            "free some space, or set SRVMOD_TOOLS to a folder on a larger disk",
        )


def _go(tool: Tool) -> str:
    return gomod.go_version_of(tool.folder / "go.mod")


def _build(missing: list[Tool], say: Progress) -> None:
    """Build lane by lane; a failed tool doesn't stop the others."""
    lanes: dict[str, list[Tool]] = {}
    for tool in missing:
        lanes.setdefault(tool.lane, []).append(tool)
    failures: list[ToolError] = []
    compiler = Compiler(golang.require("1.0", "the tools"))
    try:
        with terminated_as_interrupt(), ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                if len(lanes) > 1:
                    compiler.standard_library(say)
                running = {pool.submit(_lane, compiler, lane, say, failures) for lane in lanes.values()}
                _await(running)
            except BaseException:
                # Ends the compilers first, so that the pool's own wait for its threads is short.
                compiler.stop()
                raise
    finally:
        compiler.clean()
    if failures:
        raise ToolError(
            "\n".join(failure.problem for failure in failures),
            "; ".join(dict.fromkeys(failure.fix for failure in failures)),
        )


def _await(running: set[Future[None]]) -> None:
    """Wait in short turns, because a main thread that waits for good doesn't see Ctrl-C on every platform."""
    while running:
        done, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def _as_tool_error(label: str, error: OSError) -> ToolError:
    said = f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    return ToolError(f"{label}: {said}", golang.hint(said.lower()))


def _lane(compiler: Compiler, tools: list[Tool], say: Progress, failures: list[ToolError]) -> None:
    for tool in tools:
        if compiler.stopped:
            return
        label, began = f"{tool.name} {tool.version}", time.monotonic()
        say(f"{label}: building")
        try:
            compiler.build(tool, lambda seconds, at=label: say(f"{at}: building, {seconds:.0f} s"), SILENCE_S)
        except (ToolError, OSError) as error:
            failure = error if isinstance(error, ToolError) else _as_tool_error(label, error)
            if not compiler.stopped:
                failures.append(failure)
                say(f"{label}: failed after {time.monotonic() - began:.0f} s")
            continue
        say(f"{label}: built and verified in {time.monotonic() - began:.0f} s")
