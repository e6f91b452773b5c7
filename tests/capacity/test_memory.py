"""Memory: arithmetic that was done by hand, and its directions."""

import dataclasses

import pytest

from srvmod.capacity import (
    CapacityError,
    Layout,
    fragmentation,
    kv_allotted_per_token_per_gpu,
    kv_bytes_per_token,
    kv_bytes_per_token_per_gpu,
    kv_room,
    memory_budget,
    weight_bytes_per_gpu,
)
from srvmod.capacity.speculation import Drafter, drafter_shape
from srvmod.contract import (
    CONTEXT_TOKENS,
    FRAGMENTATION_PERCENT,
    GB,
    GIB,
    H200,
    KV_CACHE_GB_PER_GPU,
    LLAMA_3_70B,
    P5_48XLARGE,
    WEIGHTS_GB_PER_GPU,
    KvCacheDtype,
)

BF16 = Layout(kv_cache_dtype=KvCacheDtype.BF16)
FP8 = Layout()


def test_weights_per_gpu() -> None:
    weights = weight_bytes_per_gpu(LLAMA_3_70B, FP8)
    assert weights == pytest.approx(18.16 * GB, rel=1e-3)
    assert weights == pytest.approx(16.92 * GIB, rel=1e-3)
    assert weights > WEIGHTS_GB_PER_GPU.value * GB  # the specification is 4 % low


def test_bf16_weights_are_the_35_gb_of_the_diagram() -> None:
    weights = weight_bytes_per_gpu(LLAMA_3_70B, dataclasses.replace(FP8, weight_bytes_per_element=2))
    assert weights == pytest.approx(35.3 * GB, rel=1e-2)


@pytest.mark.parametrize(("dtype", "total", "per_gpu"), [("bf16", 327_680, 81_920), ("fp8", 163_840, 40_960)])
def test_kv_cache_per_token(dtype: str, total: int, per_gpu: int) -> None:
    layout = Layout(kv_cache_dtype=KvCacheDtype(dtype))
    assert kv_bytes_per_token(LLAMA_3_70B, layout.kv_cache_dtype) == total
    assert kv_bytes_per_token_per_gpu(LLAMA_3_70B, layout) == per_gpu


@pytest.mark.parametrize(("layout", "contexts"), [(BF16, 342), (FP8, 685)])
def test_contexts_of_the_specification_per_engine(layout: Layout, contexts: int) -> None:
    """1,200 contexts of 2,048 tokens in 57.5 GB: true only per node, and only in FP8."""
    tokens = KV_CACHE_GB_PER_GPU.value * GB / kv_bytes_per_token_per_gpu(LLAMA_3_70B, layout)
    assert int(tokens // CONTEXT_TOKENS.value) == contexts


@pytest.mark.parametrize(("layout", "tokens"), [(BF16, 699_000), (FP8, 1_400_000)])
def test_room_as_vllm_allots_it(layout: Layout, tokens: int) -> None:
    room = kv_room(LLAMA_3_70B, layout)
    assert room.tokens == pytest.approx(tokens, rel=0.015)
    assert room.tokens == room.blocks * 16
    assert room.contexts(2_048) == room.blocks // 128


def test_a_context_takes_whole_blocks() -> None:
    room = kv_room(LLAMA_3_70B, FP8)
    assert room.contexts(1) == room.contexts(16) == room.blocks
    assert room.contexts(17) == room.blocks // 2


def test_more_memory_holds_more() -> None:
    bigger = Layout(instance=dataclasses.replace(P5_48XLARGE, gpu=H200))
    assert kv_room(LLAMA_3_70B, bigger).tokens == pytest.approx(2_850_000, rel=2e-2)


def test_fragmentation() -> None:
    assert fragmentation(2_048, 16) == pytest.approx(0.0037, rel=2e-2)
    assert fragmentation(198, 16) * 100 < FRAGMENTATION_PERCENT.value < fragmentation(197, 16) * 100 + 0.01


def test_weights_that_leave_no_room() -> None:
    with pytest.raises(CapacityError, match="no room for KV cache"):
        kv_room(LLAMA_3_70B, Layout(tensor_parallel_size=1, overhead_gib=10))


def test_the_budget_of_a_gpu_adds_up() -> None:
    budget = memory_budget(LLAMA_3_70B, FP8)
    used = budget.reserved + budget.weights + budget.activations + budget.non_torch + budget.cuda_graphs
    assert used + budget.kv_cache == pytest.approx(budget.total)
    assert 2 * GIB < budget.activations + budget.non_torch + budget.cuda_graphs < 4 * GIB
    given = memory_budget(LLAMA_3_70B, Layout(overhead_gib=3))
    assert given.activations == 3 * GIB


def test_more_rows_and_graphs_leave_less_room() -> None:
    room = kv_room(LLAMA_3_70B, FP8).blocks
    assert kv_room(LLAMA_3_70B, Layout(max_num_batched_tokens=16_384)).blocks < room
    assert kv_room(LLAMA_3_70B, Layout(max_num_seqs=1_024)).blocks < room


def test_a_draft_model_takes_its_weights_and_its_own_kv_cache() -> None:
    """Llama 3.2 1B: 1,235.8 M parameters in bf16; 16 layers, 8 KV heads of 64, keys and values, FP8."""
    layout = dataclasses.replace(FP8, draft=drafter_shape(Drafter.MODEL, LLAMA_3_70B))
    budget = memory_budget(LLAMA_3_70B, layout)
    assert budget.draft == pytest.approx(1.2358e9 * 2 / 4, rel=1e-3)
    assert budget.kv_cache == pytest.approx(memory_budget(LLAMA_3_70B, FP8).kv_cache - budget.draft)
    per_token = kv_allotted_per_token_per_gpu(LLAMA_3_70B, layout)
    assert per_token == kv_bytes_per_token_per_gpu(LLAMA_3_70B, FP8) + 2 * 16 * 8 * 64 / 4
    assert kv_room(LLAMA_3_70B, layout).blocks == int(budget.kv_cache // (per_token * 16))


def test_an_eagle_head_takes_one_layers_kv_cache() -> None:
    layout = dataclasses.replace(FP8, draft=drafter_shape(Drafter.EAGLE_3, LLAMA_3_70B))
    per_token = kv_allotted_per_token_per_gpu(LLAMA_3_70B, layout)
    assert per_token == pytest.approx(kv_bytes_per_token_per_gpu(LLAMA_3_70B, FP8) * 81 / 80)


@pytest.mark.parametrize("drafter", Drafter)
@pytest.mark.parametrize("layout", [FP8, BF16, Layout(tensor_parallel_size=2), Layout(overhead_gib=3)])
def test_drafts_never_raise_the_room(layout: Layout, drafter: Drafter) -> None:
    drafting = dataclasses.replace(layout, draft=drafter_shape(drafter, LLAMA_3_70B))
    assert kv_room(LLAMA_3_70B, drafting).tokens < kv_room(LLAMA_3_70B, layout).tokens


def test_rows_of_graphs_beyond_the_sequences_take_memory() -> None:
    more = memory_budget(LLAMA_3_70B, Layout(max_num_seqs=128, graph_rows=512)).cuda_graphs
    assert more == 4 * memory_budget(LLAMA_3_70B, Layout(max_num_seqs=128)).cuda_graphs
