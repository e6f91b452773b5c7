"""Start, run and stop one simulated engine."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence

import uvloop

from srvmod_engine import SIMULATION, VLLM_VERSION
from srvmod_engine.api.app import App
from srvmod_engine.clock import TimerClock
from srvmod_engine.config import EngineConfig, build_config, summary
from srvmod_engine.engine import Engine
from srvmod_engine.errors import StartError
from srvmod_engine.http.server import HttpServer
from srvmod_engine.islands import check_island
from srvmod_engine.metrics import EngineMetrics, build_registry
from srvmod_engine.options import read_options
from srvmod_engine.serve_args import parse
from srvmod_engine.step_model import load_step_model

_log = logging.getLogger("srvmod_engine")
_STATS_SECONDS = 10.0
_GARBAGE_SECONDS = 5.0
_MOST_GARBAGE_SECONDS = 300.0


async def run(config: EngineConfig, *, stop: asyncio.Event, started: "asyncio.Future[int] | None" = None) -> None:
    """Serve until `stop` is set, then drain. `started` gets the port. Raises OSError when the port is taken."""
    metrics = EngineMetrics(config)
    clock = TimerClock()
    engine = Engine(config, load_step_model(config), clock, metrics)
    app = App(config, engine, build_registry(metrics))
    server = HttpServer(
        app,
        keep_alive=config.keep_alive_seconds,
        observer=lambda request, status, seconds: metrics.count_http(
            app.handler_label(request.path), request.method, status, seconds
        ),
        access_log=config.access_log,
        quiet_paths=config.quiet_paths,
    )
    if config.sim.start_seconds:
        _log.info("pretending to load and warm up for %.1f s", config.sim.start_seconds)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), config.sim.start_seconds)
    engine.start()
    # The port opens last, as vLLM's does: /health answering means that the engine is ready.
    port = await server.listen(config.host, config.port)
    _log.info("Starting %s on http://%s:%d", SIMULATION, config.host, port)
    if started is not None:
        started.set_result(port)
    tasks = [asyncio.create_task(_collect_garbage(engine))]
    if config.log_stats:
        tasks.append(asyncio.create_task(_log_stats(engine, metrics)))
    await stop.wait()
    _log.info(
        "[shutdown] mode=%s timeout=%ds", "drain" if config.shutdown_timeout else "abort", config.shutdown_timeout
    )
    # The port stays open meanwhile: /health and /metrics answer, new requests get 500.
    await engine.shutdown(config.shutdown_timeout)
    await server.close()
    for task in tasks:
        task.cancel()
    clock.close()
    _log.info("[shutdown] done")


def _no_collections() -> None:
    """A collection of all objects takes longer than a token may be late, so it doesn't come by itself any more.

    For the whole process, so it is the command's to decide and not `run`'s.
    """
    gc.collect()
    gc.freeze()  # what start-up made lives for ever
    gc.disable()


async def _collect_garbage(engine: Engine) -> None:
    """Collect when nobody waits; under load, where ended requests leave no cycles, once in a long while."""
    last = time.monotonic()
    while True:
        await asyncio.sleep(_GARBAGE_SECONDS)
        if not engine.unfinished or time.monotonic() - last > _MOST_GARBAGE_SECONDS:
            gc.collect()
            last = time.monotonic()


async def _log_stats(engine: Engine, metrics: EngineMetrics) -> None:
    """vLLM's periodic line, every ten seconds while there is traffic."""
    before = (0.0, 0.0)
    while True:
        await asyncio.sleep(_STATS_SECONDS)
        now = (metrics.counters["vllm:prompt_tokens"], metrics.counters["vllm:generation_tokens"])
        if now != before or engine.unfinished:
            _log.info(
                "Engine 000 (simulated): Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f "
                "tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%",
                (now[0] - before[0]) / _STATS_SECONDS,
                (now[1] - before[1]) / _STATS_SECONDS,
                metrics.gauges["vllm:num_requests_running"],
                metrics.gauges["vllm:num_requests_waiting"],
                metrics.gauges["vllm:kv_cache_usage_perc"] * 100,
            )
        before = now


def _allow_many_connections() -> None:
    """As many open files as the limit may be raised to, like vLLM: a stream takes two."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run_until_signal(config: EngineConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    started: asyncio.Future[int] = loop.create_future()
    started.add_done_callback(lambda _: _no_collections())
    await run(config, stop=stop, started=started)


def prepare(argv: Sequence[str], env: Mapping[str, str]) -> EngineConfig:
    """Everything that can be wrong before a port opens. Raises StartError; exits with 2 on a bad command line."""
    args = parse(argv)
    gpus = check_island(env, args.tensor_parallel_size)
    config = build_config(args, env, read_options(env))
    _log.info("GPUs: %s", ", ".join(gpus) if gpus else "island check is off (SRVMOD_SIM_ISLANDS=none)")
    for warning in config.warnings:
        _log.warning(warning)
    return config


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Exit codes: 0 stopped on request, 2 command line, 3 configuration, 4 island, 5 weights."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] != "serve":
        print("usage: python3 -m srvmod_engine serve MODEL [options of vllm serve]", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=logging.INFO,
        format="%(levelname)s %(asctime)s [%(name)s] %(message)s",
        datefmt="%m-%d %H:%M:%S",
        stream=sys.stderr,
    )
    _log.warning("%s: a simulation of vLLM %s; no model and no GPU is used", SIMULATION, VLLM_VERSION)
    try:
        config = prepare(words[1:], os.environ)
    except StartError as error:
        _log.error("%s", error)
        return int(error.code)
    _log.info("configuration: %s", json.dumps(summary(config)))
    _allow_many_connections()
    try:
        uvloop.run(_run_until_signal(config))
    except StartError as error:
        _log.error("%s", error)
        return int(error.code)
    except OSError as error:
        _log.error("--host %s --port %d: %s", config.host, config.port, error)
        return 1
    return 0
