"""The contract's claims, and facts against their sources."""

import json

import pytest

from srvmod.contract import (
    CLAIMS,
    ENGINES_PER_NODE,
    GPUS_PER_NODE,
    ITL_P95_MS,
    JUDGEMENTS,
    LLAMA_3_2_1B,
    LLAMA_3_70B,
    NUMBERS,
    NVLINK_GB_PER_SECOND,
    OUTPUT_TOKENS_PER_SECOND,
    P5_48XLARGE,
    SESSIONS,
    STATEMENTS,
    TENSOR_PARALLEL_SIZE,
    WEIGHT_CONCURRENCY,
    WEIGHT_HEAD_OF_LINE,
    WEIGHT_ITL,
    WEIGHT_TTFT,
    Clause,
    ModelConfigError,
    Number,
    Verdict,
    claims_of,
    shape_from_config,
)


def test_ids_are_unique() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def test_no_value_is_claimed_twice_in_one_sentence() -> None:
    """Each number once: two claims may share a sentence, not a sentence and a value."""
    pairs = [(number.quote, number.value, number.unit) for number in NUMBERS]
    assert len(set(pairs)) == len(pairs)


def test_every_enforced_clause_has_claims() -> None:
    for clause in Clause:
        assert claims_of(clause), clause


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_claims_say_why(claim: Number[int]) -> None:
    assert claim.why
    assert claim.verdict in Verdict


def test_weights_of_criteria_add_up() -> None:
    weights = (WEIGHT_ITL, WEIGHT_TTFT, WEIGHT_CONCURRENCY, WEIGHT_HEAD_OF_LINE)
    assert sum(weight.value for weight in weights) == pytest.approx(1)


def test_throughput_and_latency_contradict_each_other_at_the_limit() -> None:
    """650 sessions at exactly 30 ms give less than 28,000 tokens/s: the rate binds, not the ceiling."""
    assert SESSIONS.value / (ITL_P95_MS.value / 1e3) < OUTPUT_TOKENS_PER_SECOND.value


def test_numbers_print_with_their_unit() -> None:
    assert str(OUTPUT_TOKENS_PER_SECOND) == "28,000 tokens/s"


def test_statements_carry_no_value() -> None:
    assert not any(isinstance(claim, Number) for claim in STATEMENTS)


def test_p5_agrees_with_the_specification() -> None:
    assert P5_48XLARGE.gpus == GPUS_PER_NODE.value
    assert P5_48XLARGE.gpu.nvlink_gb_per_second == NVLINK_GB_PER_SECOND.value
    assert len(P5_48XLARGE.islands) == ENGINES_PER_NODE.value
    assert all(len(island.gpus) == TENSOR_PARALLEL_SIZE.value for island in P5_48XLARGE.islands)
    assert [gpu for island in P5_48XLARGE.islands for gpu in island.gpus] == list(range(8))


def test_llama_parameters_are_the_published_count() -> None:
    assert LLAMA_3_70B.parameters == 70_553_706_496
    assert LLAMA_3_70B.linear_parameters == pytest.approx(68.45e9, rel=1e-3)


def test_every_claim_is_judged() -> None:
    assert {claim.id for claim in CLAIMS} == set(JUDGEMENTS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_conditional_and_unknown_claims_say_when(claim: Number[int]) -> None:
    """A condition for what holds sometimes, what would settle it for what isn't known; neither for the others."""
    open_ended = claim.verdict in (Verdict.CONDITIONAL, Verdict.UNKNOWN)
    assert bool(JUDGEMENTS[claim.id].condition) is open_ended


def test_shapes_are_the_published_ones() -> None:
    assert LLAMA_3_2_1B.parameters == 1_235_814_400
    assert LLAMA_3_2_1B.vocabulary == LLAMA_3_70B.vocabulary  # a draft model must speak the same tokens


GOOD_CONFIG = {
    "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
    "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip


def test_a_shape_from_config_json() -> None:
    found = shape_from_config(LLAMA_3_70B.id, json.dumps(GOOD_CONFIG))
    assert found == LLAMA_3_70B


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0"),
        ({"hidden_size": "8192"}, "hidden_size"),
        ({"num_key_value_heads": 7}, "doesn't divide"),
        ({"num_local_experts": 8}, "mixture of experts"),
        ({"vocab_size": None}, "vocab_size"),
    ],
)
def test_config_json_of_something_else(change: dict[str, object], said: str) -> None:
    with pytest.raises(ModelConfigError, match=said):
        shape_from_config("x", json.dumps({**GOOD_CONFIG, **change}))


@pytest.mark.parametrize("text", ["", "[]", "{", "3"])
def test_config_json_that_is_none(text: str) -> None:
    with pytest.raises(ModelConfigError):
        shape_from_config("x", text)
