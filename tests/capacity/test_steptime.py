"""Step time: its parts, its directions, and agreement with an earlier fit."""

import pytest

from srvmod.capacity import Layout, Stack, StepModel, Work, all_reduce, step_time
from srvmod.contract import ALL_REDUCE_MS, LLAMA_3_70B, KvCacheDtype

BF16 = Layout(kv_cache_dtype=KvCacheDtype.BF16)


def milliseconds(layout: Layout, decodes: float = 325, prefill: float = 0, context: float = 768) -> float:
    """Milliseconds of a step."""
    return 1e3 * step_time(LLAMA_3_70B, layout, decodes=decodes, prefill=prefill, context=context, prompt=512).total


@pytest.mark.parametrize(
    ("layout", "total"),
    [(BF16, 36.2), (Layout(), 31.8), (Layout(stack=Stack.TENSORRT_LLM), 29.2)],
    ids=["vLLM bf16", "vLLM fp8", "TensorRT-LLM fp8"],
)
def test_decode_step_of_325_sessions_agrees_with_an_earlier_fit(layout: Layout, total: float) -> None:
    """An earlier, simpler model of the same points; both are within their errors of each other."""
    assert milliseconds(layout) == pytest.approx(total, rel=0.1)


def test_parts_add_up_and_each_has_its_cause() -> None:
    parts = step_time(LLAMA_3_70B, BF16, decodes=325, prefill=0, context=768, prompt=512)
    assert parts.total == pytest.approx(
        parts.matrix_products + parts.kv_read + parts.all_reduce + parts.elementwise + parts.host
    )
    assert parts.prefill_attention == 0
    longer = step_time(LLAMA_3_70B, BF16, decodes=325, prefill=0, context=1536, prompt=512)
    assert longer.kv_read == pytest.approx(2 * parts.kv_read)
    assert longer.total - longer.kv_read == pytest.approx(parts.total - parts.kv_read)


def test_a_model_of_steps_answers_like_the_function() -> None:
    """What the simulated engine asks step by step is what the planner asks."""
    work = Work(decodes=100, context_tokens=100 * 700, prefill=512, attention_pairs=512 * 256, prompts=1)
    one = StepModel(LLAMA_3_70B, Layout()).seconds(work)
    assert one == step_time(LLAMA_3_70B, Layout(), decodes=100, prefill=512, context=700, prompt=512).total


def test_all_reduces_are_below_the_specifications_bound_one_by_one_only() -> None:
    one = 1e3 * all_reduce(325 * LLAMA_3_70B.hidden, 4, Stack.VLLM)
    assert one == pytest.approx(0.037, abs=0.002)
    assert one < ALL_REDUCE_MS.value < 161 * one


def test_all_reduce_table() -> None:
    assert all_reduce(1, 4, Stack.VLLM) == all_reduce(128, 4, Stack.VLLM)
    assert all_reduce(10**6, 1, Stack.VLLM) == 0
    last = all_reduce(2**29, 4, Stack.VLLM)
    assert all_reduce(2**30, 4, Stack.VLLM) == pytest.approx(2 * last)
    with pytest.raises(KeyError):
        all_reduce(1, 3, Stack.VLLM)


@pytest.mark.parametrize("more", [{"decodes": 400}, {"prefill": 100}, {"context": 900}])
def test_more_work_takes_longer(more: dict[str, float]) -> None:
    assert milliseconds(BF16, **more) > milliseconds(BF16)


def test_fp8_kv_cache_is_never_slower() -> None:
    for decodes in (1, 32, 325, 650):
        assert milliseconds(Layout(), decodes=decodes) <= milliseconds(BF16, decodes=decodes)
