"""`python -m srvmod.local.nodes launcher|pack|check|cleanup --state FOLDER`; the first runs inside the stack."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from srvmod.local import nodes
from srvmod.local.facts import REAL_NODE_SLOTS
from srvmod.local.health import answer_health
from srvmod.local.paths import State, default_state

HEALTH = ("127.0.0.1", 9181)


def launcher(arguments: argparse.Namespace) -> None:
    """Turns Karpenter's Node objects into machines; ends with the stack's namespaces."""
    from srvmod.local.api import Api
    from srvmod.local.nodes.images.pack import packed
    from srvmod.local.nodes.launcher import Launcher
    from srvmod.local.nodes.paths import Slot
    from srvmod.local.nodes.pretended import PretendedNodes
    from srvmod.local.nodes.slot import Cluster, RealNode
    from srvmod.local.nodes.toolset import Toolset
    from srvmod.local.pki import Authority

    state = State(arguments.state)
    api = Api(arguments.kubeconfig)
    authority = Authority(state.pki)
    tools, cluster = Toolset.find(), Cluster(api.server, authority)
    machines = [RealNode(Slot(state, number), tools, cluster) for number in range(arguments.slots)]
    running = Launcher(api, machines, packed(state), PretendedNodes(api, state, authority.cert_file))
    answer_health(HEALTH, running.problem)
    running.run()


def pack(arguments: argparse.Namespace) -> None:
    """Packs the nodes' images into the state folder's cache."""
    from srvmod.tools import ensure

    tools = ensure(["crane", "envoy-gateway"], progress=print)
    nodes.prepare(arguments.state, tools, print)


def check(arguments: argparse.Namespace) -> None:
    """Says what this machine lacks for the nodes; exit status 1 when it lacks anything."""
    problems = nodes.check_host(arguments.state)
    for problem in problems:
        print(f"- {problem}")
    sys.exit(1 if problems else 0)


def cleanup(arguments: argparse.Namespace) -> None:
    """Removes what the nodes left outside the state folder."""
    nodes.cleanup(arguments.state)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m srvmod.local.nodes", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for function in (launcher, pack, check, cleanup):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(run=function)
        command.add_argument("--state", type=Path, default=default_state().root, help="the stack's state folder")
        if function is launcher:
            command.add_argument("--kubeconfig", type=Path, required=True, help="how to reach the API server")
            command.add_argument("--slots", type=int, default=REAL_NODE_SLOTS, help="number of real nodes")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    arguments.run(arguments)


if __name__ == "__main__":
    main()
