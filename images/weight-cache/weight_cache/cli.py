"""The command: `run` is the agent, `manifest` makes a revision's manifest."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from weight_cache import manifest, status
from weight_cache.agent import Agent
from weight_cache.cache import Cache
from weight_cache.deletion_cost import EngineCosts
from weight_cache.engines import NodeEngines
from weight_cache.errors import CacheError
from weight_cache.kube import HttpsApi, from_kubeconfig, in_cluster
from weight_cache.layout import Layout
from weight_cache.progress import Progress
from weight_cache.refusals import Refusals
from weight_cache.store import S3Store
from weight_cache.taint import DEFAULT_TAINT, lift_taint

_log = logging.getLogger("weight_cache")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def _parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weight_cache", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="fill and verify the cache, open the node, stay")
    run.add_argument("--bucket", default=env.get("BUCKET"), help="env BUCKET")
    run.add_argument("--prefix", default=env.get("PREFIX", ""), help="env PREFIX")
    run.add_argument("--revision", default=env.get("REVISION"), help="env REVISION")
    run.add_argument("--models-dir", type=Path, default=Path(env.get("MODELS_DIR", "/models")), help="env MODELS_DIR")
    run.add_argument("--node-name", default=env.get("NODE_NAME"), help="env NODE_NAME")
    run.add_argument("--taint", default=env.get("STARTUP_TAINT", DEFAULT_TAINT), help="env STARTUP_TAINT")
    run.add_argument("--no-taint", action="store_true", help="leave nodes and pods alone")
    run.add_argument("--namespace", default=env.get("POD_NAMESPACE"), help="of the engines, env POD_NAMESPACE")
    run.add_argument(
        "--engine-selector",
        default=env.get("ENGINE_SELECTOR"),
        help="labels of the engines whose deletion cost is kept; default: none; env ENGINE_SELECTOR",
    )
    _add_required(run, env)
    run.add_argument("--kubeconfig", type=Path, help="outside a pod: use this kubeconfig's current context")
    run.add_argument("--port", type=int, default=int(env.get("PORT", "8081")), help="status port, env PORT")
    run.add_argument("--host", default=env.get("HOST", "0.0.0.0"), help="status address, env HOST")
    run.add_argument("--parallel", type=_positive, default=int(env.get("PARALLEL", "32")), help="ranges at a time")
    run.add_argument("--part-mib", type=_positive, default=int(env.get("PART_MIB", "32")), help="size of a range, MiB")
    run.add_argument(
        "--verify-full",
        action="store_true",
        default=env.get("VERIFY_FULL", "") in {"1", "true"},
        help="check every SHA-256 at start, not only sizes; env VERIFY_FULL",
    )
    run.add_argument("--once", action="store_true", help="end when the node is open")
    make = commands.add_parser("manifest", help="write the manifest of DIR to standard output")
    make.add_argument("dir", type=Path)
    make.add_argument("--revision", help="default: the folder's name")
    _add_required(make, env)
    return parser


def _add_required(parser: argparse.ArgumentParser, env: Mapping[str, str]) -> None:
    parser.add_argument(
        "--required",
        type=str.split,
        default=env.get("REQUIRED", " ".join(manifest.MODEL_FILES)),
        help="patterns of files that a revision must have, separated by spaces; default: %(default)r; env REQUIRED",
    )


def _check_run(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """What is missing, all at once; ends with 2."""
    missing = [f"--{name} (env {name.upper()})" for name in ("bucket", "revision") if not getattr(args, name)]
    if not args.no_taint and not args.node_name:
        missing.append("--node-name (env NODE_NAME), or --no-taint")
    if args.engine_selector and not args.no_taint and not args.namespace:
        missing.append("--namespace (env POD_NAMESPACE), which --engine-selector needs")
    if missing:
        parser.error("missing: " + ", ".join(missing))
    try:
        manifest.check_revision(args.revision)
    except CacheError as error:
        parser.error(str(error))


def _run(args: argparse.Namespace) -> int:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    state = status.Status(args.revision, Progress())
    cache = Cache(
        Layout(args.models_dir, args.revision),
        parallel=args.parallel,
        part_bytes=args.part_mib * 2**20,
        stop=stop,
        required=args.required,
    )
    open_node: Callable[[], bool] | None = None
    keep_costs: Callable[[], int] | None = None
    if not args.no_taint:
        api = HttpsApi(from_kubeconfig(args.kubeconfig) if args.kubeconfig else in_cluster(os.environ))
        open_node = partial(lift_taint, api, args.node_name, args.taint, stop)
        if args.engine_selector:
            engines = NodeEngines(api, args.node_name, args.namespace, args.engine_selector)
            keep_costs = partial(_look_after, engines)
    agent = Agent(
        cache,
        partial(S3Store, args.bucket, connections=args.parallel + 4),
        args.prefix,
        open_node=open_node,
        keep_costs=keep_costs,
        status=state,
        stop=stop,
        verify_full=args.verify_full,
    )
    server = status.serve(state, args.host, args.port)
    _log.info(
        "cache %s, revision %s, from s3://%s/%s, status on port %d",
        args.models_dir,
        args.revision,
        args.bucket,
        args.prefix,
        server.server_address[1],
    )
    try:
        agent.run(once=args.once)
    finally:
        server.shutdown()
        server.server_close()
    _log.info("stopped")
    return 0


def _look_after(engines: NodeEngines) -> int:
    """Deletion costs and refusals, of one list of pods; each is done also when the other fails."""
    listed = engines.pods()
    try:
        return EngineCosts(engines).keep(listed)
    finally:
        Refusals(engines).tell(listed)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done or stopped, 1 can't start (message on stderr), 2 command line."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(os.environ)
    # A pod that sets everything by environment needs no words at all.
    args = parser.parse_args(words or ["run"])
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr
    )
    try:
        if args.command == "manifest":
            revision = args.revision or args.dir.resolve().name
            sys.stdout.write(manifest.build(args.dir, revision, args.required).decode())
            return 0
        _check_run(parser, args)
        return _run(args)
    except (CacheError, OSError) as error:
        print(f"weight_cache: {error}", file=sys.stderr)
        return 1
