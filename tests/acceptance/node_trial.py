"""Runs in namespaces of its own: control plane, DNS, simulated AWS, kwok and launcher; no Karpenter, no Pulumi.

`python -m tests.acceptance.node_trial STATE`, started by the fixture of test_nodes.py.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from srvmod.local.components import Plan
from srvmod.local.enclosure import own_network, own_root
from srvmod.local.paths import REPO, State
from srvmod.local.supervisor import Supervisor
from srvmod.tools import ensure

TOOLS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "coredns", "kwok")


async def serve(supervisor: Supervisor, state: State) -> None:
    server = await asyncio.start_unix_server(supervisor.answer, state.socket)
    async with server:
        await supervisor.watch()


def main(root: str) -> None:
    state = State(Path(root))
    own_root(state.run / "root", [REPO, state.root])
    own_network()
    (state.pki / "tokens.csv").touch(mode=0o600)
    plan = Plan(state, ensure(list(TOOLS)), {})
    plan.client("admin", "admin", "system:masters")
    components = [*plan._control_plane(), plan._dns(), plan._aws(), plan._kwok(), plan._launcher()]
    asyncio.run(serve(Supervisor(components, state.logs), state))


if __name__ == "__main__":
    main(sys.argv[1])
