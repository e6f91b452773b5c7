"""How many streams one simulated engine holds on one CPU, and how well it keeps its own time.

The engine is a process on one CPU, the clients (see `load`) are another one on another CPU. Steps are of constant
length here, so that the time of every token is known; that the lengths come from the capacity model otherwise makes
no difference to the work. The timing error is that of the interval between two tokens of a stream, as the kernel of
the receiving side stamped their packets, against the length of a step.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from srvmod.contract.bench import BenchResult
from srvmod.local.engine.bench.load import Load
from srvmod.local.engine.tiny_weights import write_tiny_weights

STREAMS: Final = 650
TOKENS_PER_SECOND: Final = 28_000
TIMING_ERROR_P95_MS: Final = 1.0
_ENGINE: Final = Path(__file__).resolve().parents[1]
_START_SECONDS: Final = 60.0
_JOINING: Final = 1.012
"""A stream that ends waits for its next answer's first token, so steps are shorter by what those waits cost."""
_OUTPUT_TOKENS: Final = (128, 384)
_PROMPT_WORDS: Final = 64
_PRIORITY: Final = 10


class BenchError(Exception):
    """The bench couldn't be run; the message says what failed and what to do."""


@dataclass(frozen=True)
class Speed:
    """What to try."""

    streams: int = STREAMS
    tokens_per_second: int = TOKENS_PER_SECOND
    seconds: float = 15.0
    warm_seconds: float = 4.0

    @property
    def step_seconds(self) -> float:
        """Length of a step with which the streams together get the rate."""
        return self.streams / (self.tokens_per_second * _JOINING)


def bench_engine(speed: Speed) -> dict[str, Any]:
    """Run engine and clients. Raises BenchError when one of them fails."""
    with tempfile.TemporaryDirectory() as folder, _engine(Path(folder), speed) as (engine, port, log):
        load = Load(
            host="127.0.0.1",
            port=port,
            streams=speed.streams,
            warm_seconds=speed.warm_seconds,
            measured_seconds=speed.seconds,
            step_seconds=speed.step_seconds,
            output_tokens=_OUTPUT_TOKENS,
            prompt_words=_PROMPT_WORDS,
            engine_pid=engine.pid,
        )
        seen = _clients(load)
        metrics = _metrics(port)
        log.seek(0)
        complaints = [line.strip() for line in log if "the simulation lags" in line]
    return result_of(speed, seen, metrics, complaints)


def result_of(speed: Speed, seen: dict[str, Any], metrics: dict[str, float], complaints: list[str]) -> dict[str, Any]:
    """The bench result from what the clients saw, the engine's metrics and its log lines about lagging."""
    milliseconds = {name: round(seen[name] * 1e3, 3) for name in seen if "_p" in name}
    rate = seen["tokens"] / seen["seconds"]
    error = milliseconds["gap_error_p95"]
    lags = bool(complaints) or metrics["srvmod_sim_lagging"] > 0
    figures = {
        "streams": speed.streams,
        "stepMs": round(speed.step_seconds * 1e3, 3),
        "tokensPerSecond": round(rate),
        "timingErrorP50Ms": milliseconds["gap_error_p50"],
        "timingErrorP95Ms": error,
        "timingErrorP99Ms": milliseconds["gap_error_p99"],
        "afterStepsFirstTokenP50Ms": milliseconds["spread_p50"],
        "afterStepsFirstTokenP95Ms": milliseconds["spread_p95"],
        "ttftP50Ms": milliseconds["first_token_p50"],
        "ttftP95Ms": milliseconds["first_token_p95"],
        "requestsPerSecond": round(seen["requests"] / seen["seconds"], 1),
        "failures": len(seen["failures"]),
        "firstFailure": next(iter(seen["failures"]), None),
        "engineCpus": round(seen["engine_cpu_seconds"] / seen["seconds"], 3),
        "clientCpus": round(seen["cpu_seconds"] / seen["seconds"], 3),
        "othersCpus": round(seen["other_cpu_seconds"] / seen["seconds"], 3),
        "engineSaysItLags": lags,
        "complaint": next(iter(complaints), None),
        "priority": seen["priority"],
        "seconds": round(seen["seconds"], 2),
    }
    goals = {
        "tokensPerSecond": speed.tokens_per_second,
        "timingErrorP95Ms": TIMING_ERROR_P95_MS,
        "engineCpus": 1.0,
        "failures": 0,
    }
    met = (
        rate >= speed.tokens_per_second
        and error <= TIMING_ERROR_P95_MS
        and figures["engineCpus"] <= 1.0
        and not seen["failures"]
    )
    return BenchResult("engine", figures, goals, met).as_json()


def _cpus() -> tuple[int, int]:
    """One CPU for the engine, one for the clients; the same when there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[-1], usable[0]


def _place(pid: int, cpu: int) -> str:
    """Put a process on its CPU, before others where that is allowed; how it stands to others then."""
    os.sched_setaffinity(pid, {cpu})
    try:
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(_PRIORITY))
    except PermissionError:
        return "normal"
    return "before others"


@contextlib.contextmanager
def _engine(folder: Path, speed: Speed) -> Iterator[tuple[subprocess.Popen[bytes], int, IO[str]]]:
    """A running engine, its port and its log."""
    weights = folder / "weights"
    weights.mkdir()
    write_tiny_weights(weights)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = ["serve", str(weights), "-tp=4", "--kv-cache-dtype=fp8", f"--max-num-seqs={speed.streams + 8}"]
    words += [f"--max-num-batched-tokens={8192 + speed.streams}", f"--port={port}", "--host=127.0.0.1"]
    words += ["--disable-uvicorn-access-log"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SRVMOD_SIM_")},
        "PYTHONPATH": str(_ENGINE),
        "SRVMOD_SIM_ISLANDS": "none",
        "SRVMOD_SIM_STEP_MODEL": "srvmod_engine.step_model:linear",
        "SRVMOD_SIM_STEP_MS": str(speed.step_seconds * 1e3),
        "SRVMOD_SIM_STEP_PER_SEQ_US": "0",
        "SRVMOD_SIM_STEP_PER_PREFILL_TOKEN_US": "0",
    }
    path = folder / "engine.log"
    with path.open("w") as out, path.open() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "srvmod_engine", *words], env=environment, stdout=out, stderr=out
        )
        try:
            _wait_for(process, port, path)
            _place(process.pid, _cpus()[0])
            yield process, port, log
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise BenchError(f"the engine didn't open its port within {_START_SECONDS:.0f} s; its log:\n{log.read_text()}")


def _clients(load: Load) -> dict[str, Any]:
    """Run the clients' process; its figures."""
    command = [sys.executable, "-m", "srvmod.local.engine.bench.load"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        priority = _place(process.pid, _cpus()[1])
        limit = load.warm_seconds + load.measured_seconds + _START_SECONDS
        try:
            out, err = process.communicate(json.dumps(asdict(load)), timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError(f"the clients didn't end within {limit:.0f} s; is the machine very busy?") from None
    if process.returncode != 0:
        raise BenchError(f"the clients failed:\n{err.strip()}")
    return {**json.loads(out), "priority": priority}


def _metrics(port: int) -> dict[str, float]:
    """The engine's metrics without labels."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    pairs = (line.rpartition(" ")[::2] for line in text.splitlines() if line and line[0] != "#" and "{" not in line)
    return {name: float(value) for name, value in pairs}
