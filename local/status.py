"""What runs now, asked from the parts themselves."""

from __future__ import annotations

from typing import Any

from srvmod.local import facts, namespace
from srvmod.local.cluster_view import ClusterView, EnginesAsked, ready_engines
from srvmod.local.errors import LocalError, low_disk
from srvmod.local.locking import at_work
from srvmod.local.nodes.view import components as node_processes
from srvmod.local.paths import State


def status(state: State) -> dict[str, Any]:
    """What is true now, asked from the parts themselves. `running` is False when there is no stack."""
    found = facts.load(state.facts_file)
    work = at_work(state)
    if found is None:
        if work:
            return _not_running("no stack yet" if work[0] == "up" else "no stack any more", work)
        if holding := namespace.holders(state):
            return _not_running(
                f"the record of the stack is gone, but its processes {holding} run; `srvmod local down` ends them"
            )
        return _not_running("no stack; `srvmod local up` starts one")
    if not found.alive():
        return _not_running(
            "the stack's namespaces are gone (killed, or the machine restarted); "
            "`srvmod local up` starts it again, `srvmod local down` clears it",
            work,
        )
    pids = facts.inner_pids(found.supervisor_pid)
    try:
        inside, silent = namespace.ask(state, "status", fresh=True)["components"], ""
    except LocalError as error:
        inside, silent = [], str(error)
    components = [{"name": "supervisor", "pid": pids.get(1), "healthy": not silent, "problem": silent}]
    components += [
        {
            "name": c["name"],
            "pid": pids.get(c["pid"]) if c["pid"] else None,
            "healthy": c["healthy"],
            "problem": c["problem"],
        }
        for c in inside
    ]
    try:
        cluster = ClusterView(state.kubeconfig)
        seen, asked = cluster.nodes(), cluster.engines_asked()
        kind, unfinished = asked.kind if asked else None, _unfinished(asked, seen)
        if unfinished and not work:
            unfinished += "; `srvmod local up` goes on"
        problem = "; ".join(filter(None, (low_disk(state.root), unfinished)))
    except Exception as error:  # whatever the API server's trouble is, status must still tell the rest
        seen, kind, problem = [], None, f"nodes unknown: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    components += node_processes(state.root, pids)
    return {
        "running": True,
        "problem": problem,
        "atWork": _work(work),
        "endpoint": found.endpoint,
        "apiKeyFile": str(state.api_key_file),
        "kubeconfig": str(state.kubeconfig),
        "awsEndpoint": found.aws_url,
        "engineKind": kind,
        "nodes": seen,
        "components": components,
    }


def _unfinished(asked: EnginesAsked | None, nodes: list[dict[str, Any]]) -> str:
    """What the program has asked for and isn't there; "" when nothing is missing."""
    if asked is None:
        return "the program hasn't made its engines yet"
    ready = ready_engines(nodes)
    return "" if ready >= asked.count else f"{ready} of {asked.count} engines ready"


def _not_running(problem: str, work: tuple[str, int] | None = None) -> dict[str, Any]:
    return {"running": False, "problem": problem, "atWork": _work(work), "components": [], "nodes": []}


def _work(work: tuple[str, int] | None) -> dict[str, Any] | None:
    return {"command": work[0], "pid": work[1]} if work else None
