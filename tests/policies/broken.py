"""Each clause broken on purpose in what the program declares; every gate must name it by the same id."""

from __future__ import annotations

from typing import Any

import yaml

from tests.policies.table import HERE, LOADER

REPO = HERE.parents[1]
BROKEN = {
    "MC-HW-01": ("--tensor-parallel-size=4", "--tensor-parallel-size=2"),
    "MC-KV-01": ("--block-size=16", "--block-size=32"),
    "MC-CB-01": ("--enable-chunked-prefill", "--no-enable-chunked-prefill"),
    "MC-SE-01": ("--stream-interval=1", "--stream-interval=8"),
    "INV-SRVMOD-01": ("--max-num-batched-tokens=2048", "--max-num-batched-tokens=2048 --scheduler-cls=acme.Batcher"),
    "INV-SRVMOD-02": ("--async-scheduling", "--enforce-eager"),
    "INV-SRVMOD-03": ("--distributed-executor-backend=mp", "--distributed-executor-backend=ray"),
}
"""Clause → a change of the engine's words that breaks it."""


def engine(env: str, clause: str | None = None) -> dict[str, Any]:
    """The engine that an environment's program declares, as rendered; with a clause broken."""
    path = REPO / "manifests" / env / "serving/deployment-engine.yaml"
    document: dict[str, Any] = yaml.load(path.read_text(), Loader=LOADER)
    if clause is not None:
        before, after = BROKEN[clause]
        (container,) = document["spec"]["template"]["spec"]["containers"]
        words: list[str] = container["args"]
        assert before in words, (env, before, words)
        at = words.index(before)
        words[at : at + 1] = after.split()
    return document


def serving(env: str, clause: str | None = None) -> str:
    """Everything that an environment applies beside its engine, and the engine, perhaps broken."""
    folder = REPO / "manifests" / env / "serving"
    others = [path.read_text() for path in sorted(folder.glob("*.yaml")) if path.name != "deployment-engine.yaml"]
    return "\n---\n".join([*others, yaml.safe_dump(engine(env, clause))])
