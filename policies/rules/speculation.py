"""DEC-SRVMOD-01: speculative decoding stops in batches that it doesn't make faster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from srvmod.capacity.speculation import draft_bound
from srvmod.contract import Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Known, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import vllm_engines

DRAFTS = Maker(
    Clause.DEC_SRVMOD_01,
    "drafts",
    "in large batches checking drafts takes longer than it saves, so the p95 is missed with fewer sessions",
)
SCHEDULE = "num_speculative_tokens_per_batch_size"
"""vLLM's schedule: first and last batch size, both within, and how many tokens are drafted between them."""
Batch: TypeAlias = tuple[int, int, int]


def drafts(world: World, config: Config) -> Iterator[Finding]:
    """Whoever drafts says in which batches, and none is larger than the planner finds worth it."""
    del config
    for engine in vllm_engines(world):
        yield from _of(engine)


def _of(engine: Engine) -> Iterator[Finding]:
    line, most = engine.line, draft_bound()
    fix = f'--speculative-config={{…,"{SCHEDULE}":[[1,{most},1],[{most + 1},<max_num_seqs>,0]]}}'
    given = line.given.get("speculative_config")
    if isinstance(given, Unknown):
        yield DRAFTS.unknown("speculative_config", given)
        return
    text = "" if given is None or given.value is None else str(given.value)
    if not text or text == "None":
        for name in ("spec_method", "spec_model", "spec_tokens"):
            other = line.given.get(name)
            if isinstance(other, Unknown):
                yield DRAFTS.unknown(name, other)
                return
            if isinstance(other, Known) and other.value:
                yield DRAFTS.error(other.place, f"{name} drafts in every batch, however large", fix)
                return
        return
    assert given is not None
    batches = schedule_of(text)
    if isinstance(batches, str):
        yield DRAFTS.error(given.place, batches, fix)
        return
    limit = line.integer("max_num_seqs")
    largest = largest_drafted(batches, limit.value if isinstance(limit, Known) else None)
    if largest is None or largest > most:
        sizes = "of any size" if largest is None else f"of up to {largest} sequences"
        yield DRAFTS.error(given.place, f"drafts in batches {sizes}; beyond {most} it isn't worth it", fix)
        return
    what = "several tokens come out of one step: inter-token latency is counted in bursts, and its p95 means less"
    yield DRAFTS.warning(given.place, what, "judge the p95 of requests' means")


def schedule_of(text: str) -> list[Batch] | str:
    """The schedule in a speculative configuration, by batch size; what is wrong with it otherwise."""
    try:
        content: Any = json.loads(text)
        fields = {key.replace("-", "_"): value for key, value in content.items()}
    except (ValueError, RecursionError, AttributeError):
        return "speculative_config isn't a mapping in JSON"
    entries = fields.get(SCHEDULE)
    if not entries:
        return f"drafts in every batch, however large: no {SCHEDULE}"
    try:
        found = sorted((int(first), int(last), int(tokens)) for first, last, tokens in entries)
    except (TypeError, ValueError):
        return f"{SCHEDULE} has an entry that isn't [first, last, tokens]"
    starts = [1, *(last + 1 for _, last, _ in found)]
    in_order = all(first >= start and last >= first for start, (first, last, _) in zip(starts, found, strict=False))
    if not in_order or found[0][0] != 1 or min(tokens for _, _, tokens in found) < 0:
        return f"{SCHEDULE} doesn't begin at 1, overlaps, runs backwards or drafts fewer than 0 tokens"
    return found


def largest_drafted(batches: list[Batch], limit: int | None) -> int | None:
    """The largest batch that drafts; None without an end. An entry holds on to the next, as vLLM reads them."""
    drafting = [index for index, (_, _, tokens) in enumerate(batches) if tokens]
    if not drafting:
        return 0
    last = drafting[-1]
    if last + 1 == len(batches):
        return limit
    end = batches[last + 1][0] - 1
    return end if limit is None else min(end, limit)


RULES = (drafts,)
