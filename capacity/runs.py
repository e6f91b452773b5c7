"""What a measured run did, step by step: how many steps with how much work, before asking how long one takes.

Where all requests are there from the start, the steps don't depend on how long they take. So a run is played once,
and a fit only weighs its steps anew.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from srvmod.capacity.memory import kv_bytes_per_token_per_gpu, kv_room, weight_bytes_per_gpu
from srvmod.capacity.points import Kind, Point
from srvmod.capacity.stacks import Stack
from srvmod.capacity.steptime import Work
from srvmod.contract import GIB

BINS = 10
"""Bins per e-fold of decodes and of prompt tokens in which steps are averaged."""
TRT_KV_FRACTION = 0.95
"""Share of free memory that trtllm-bench gives the KV cache."""
TRT_OVERHEAD_GIB = 3.0
TRT_MOST_SEQUENCES = 4_096
TRT_MOST_TOKENS = 32_768
VLLM_UTILISATION = 0.90
"""vLLM's default up to 0.19, which all measured releases are."""
VLLM_OVERHEAD_GIB = 3.0
VLLM_BUDGET = 8_192
VLLM_MOST_SEQUENCES = 1_024
VLLM_0_6_MOST_SEQUENCES = 256
SHARED_PROMPT = 0.12
"""Share of the prompts of chat data sets that stacks with a prefix cache on by default don't compute again, since
their requests begin with one of few system prompts. Assumed; synthetic prompts (kind tput) share nothing."""
REQUESTS = 3_000
"""Requests of a run whose source doesn't say."""


@dataclass(frozen=True)
class Steps:
    """A number of like steps."""

    count: float
    work: Work


@dataclass(frozen=True)
class Run:
    """The steps of a run of one engine. `tokens` is its output; 0 where the value is a mean over steps."""

    point: Point
    steps: tuple[Steps, ...]
    tokens: float
    sequences: float
    """Most sequences at once."""


@dataclass(frozen=True)
class Limits:
    """How much an engine takes at once."""

    sequences: float
    tokens: int


def run_of(point: Point) -> Run:
    """The steps of a measured point."""
    if not point.kind.is_throughput:
        return Run(point, tuple(_steady(point)), 0.0, point.concurrency)
    limits = limits_of(point)
    requests = max(1, (point.requests or REQUESTS) // point.replicas)
    prompt, output = max(1, round(computed_prompt(point))), max(1, round(point.output_tokens))
    steps = _play(prompt, output, requests, limits)
    return Run(point, steps, requests * output * point.replicas, limits.sequences)


def computed_prompt(point: Point) -> float:
    """Prompt tokens that are computed per request: less than there are where a prefix cache is at work."""
    caches = point.stack in (Stack.VLLM, Stack.SGLANG) and point.kind is not Kind.THROUGHPUT
    return point.prompt_tokens * (1 - SHARED_PROMPT if caches else 1.0)


def limits_of(point: Point) -> Limits:
    """Sequences and tokens per step of an engine in a run with all requests offered at once."""
    if point.stack.reserves_whole_requests:
        return _trt_limits(point)
    return _vllm_limits(point)


def _trt_limits(point: Point) -> Limits:
    """trtllm-bench's own tuning: as many whole requests as the KV cache holds, at most 4,096, and per step the tokens
    that keep as many arriving as leave, from 2,048 to 32,768.

    Source: https://github.com/NVIDIA/TensorRT-LLM, tensorrt_llm/bench/build/tuning.py (commit 04cba88).
    """
    layout, model = point.layout, point.model
    weights = weight_bytes_per_gpu(model, layout)
    free = layout.instance.gpu.usable - weights - TRT_OVERHEAD_GIB * GIB
    room = max(0.0, free) * TRT_KV_FRACTION / kv_bytes_per_token_per_gpu(model, layout)
    fitting = max(1.0, room / (point.prompt_tokens + point.output_tokens))
    tuned = min(fitting, TRT_MOST_SEQUENCES)
    wanted = min(tuned * (1 + point.prompt_tokens / point.output_tokens), TRT_MOST_TOKENS)
    grain = 256 if wanted < 4_096 else 512 if wanted < 8_192 else 1_024
    tokens = max(2_048, grain * math.ceil(wanted / grain))
    return Limits(min(tuned, point.most_sequences or TRT_MOST_SEQUENCES), tokens)


def _vllm_limits(point: Point) -> Limits:
    """Admission on current use: as many as fit with half of their answer, at most the engine's sequence limit."""
    layout, model = point.layout, point.model
    per_token = kv_bytes_per_token_per_gpu(model, layout)
    free = layout.instance.gpu.usable * VLLM_UTILISATION - weight_bytes_per_gpu(model, layout)
    room = max(0.0, free - VLLM_OVERHEAD_GIB * GIB) / per_token
    fitting = max(1.0, room / (computed_prompt(point) + point.output_tokens / 2))
    most = VLLM_0_6_MOST_SEQUENCES if point.stack is Stack.VLLM_0_6 else VLLM_MOST_SEQUENCES
    return Limits(min(fitting, point.most_sequences or most), VLLM_BUDGET)


def kv_share_of(point: Point) -> float:
    """KV cache that the decoding sequences of a point at a given concurrency need, of what its engine has.

    More than 1 can't be held at once. Either the concurrency isn't that of the steps, since Little's law also counts
    sequences that were preempted and wait in the middle of their answer; or prompts share more of their beginnings
    than one by one is counted here; or the engine's memory isn't what its source and this account say.
    """
    layout = replace(
        point.layout,
        gpu_memory_utilization=VLLM_UTILISATION,
        overhead_gib=VLLM_OVERHEAD_GIB,
        max_num_batched_tokens=limits_of(point).tokens,
    )
    per_sequence = point.prompt_tokens + point.output_tokens / 2 + (layout.block_tokens - 1) / 2
    return point.concurrency * per_sequence / kv_room(point.model, layout).tokens


def _bin(value: float) -> int:
    return round(math.log(value) * BINS) if value > 0 else -1


def _play(prompt: int, output: int, requests: int, limits: Limits) -> tuple[Steps, ...]:
    """Play a run of equal requests: decodes first, then prompts in chunks as far as the step's tokens go."""
    sums: dict[tuple[int, int], list[float]] = {}
    ends: deque[list[int]] = deque()  # [step, sequences that end after it], by rising step
    most = max(1, int(limits.sequences))
    step = active = context = chunk = 0
    waiting, left = requests, requests
    while left:
        room = limits.tokens - active
        prefill, pairs, started, alike = 0, 0.0, 0, 1
        if not chunk and (not waiting or active >= most):
            alike = ends[0][0] - step + 1  # nothing changes until the next sequence ends
        while room > 0 and waiting:
            if not chunk:
                if active + started >= most:
                    break
                chunk = prompt
            take = min(room, chunk)
            pairs += take * (prompt - chunk + take / 2)
            chunk, room, prefill = chunk - take, room - take, prefill + take
            if not chunk:
                waiting, started = waiting - 1, started + 1
        row = sums.setdefault((_bin(active), _bin(prefill)), [0.0] * 6)
        mean_context = context + active * (alike - 1) / 2
        for index, value in enumerate((1, active, mean_context, prefill, pairs, started)):
            row[index] += value * alike
        step += alike
        context += active * alike
        if ends and ends[0][0] == step - 1:
            ended = ends.popleft()[1]
            context -= ended * (prompt + output)
            active, left = active - ended, left - ended
        if started:
            ends.append([step + max(0, output - 2), started])
            active, context = active + started, context + started * (prompt + 1)
    return tuple(Steps(row[0], Work(*(value / row[0] for value in row[1:]))) for row in sums.values())


def _steady(point: Point) -> Iterator[Steps]:
    """Steps at a given concurrency: prompts arrive at random, as many as answers end."""
    decodes = point.concurrency
    context = decodes * (point.prompt_tokens + point.output_tokens / 2)
    if point.kind is Kind.BATCH_1:
        yield Steps(1.0, Work(decodes, context))
        return
    rate = decodes / point.output_tokens
    for prompts, share in poisson(rate):
        prefill = prompts * computed_prompt(point)
        yield Steps(share, Work(decodes, context, prefill, prefill * point.prompt_tokens / 2, prompts))


def poisson(rate: float) -> Iterator[tuple[int, float]]:
    """Counts and their shares, as far as they matter."""
    if rate <= 0:
        yield 0, 1.0
        return
    for count in range(int(rate + 6 * math.sqrt(rate)) + 4):
        yield count, math.exp(-rate + count * math.log(rate) - math.lgamma(count + 1))
