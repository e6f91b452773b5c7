"""Settings of good stacks: the shipped files, defaults, what follows, and what is never shown."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from srvmod.capacity import Layout, Slo, Traffic, kv_room, predict
from srvmod.contract import LLAMA_3_70B, KvCacheDtype, Milliseconds
from srvmod.infra.settings import (
    ChartMode,
    NatGateways,
    Settings,
    SettingsError,
    load,
    load_stack_file,
)
from srvmod.infra.settings.sizing import plan_limited
from tests.infra.bad_configs.base import GOOD, changed, write

ROOT = Path(__file__).parents[2]
STACKS = ("local", "dev", "staging", "prod")


def good(**changes: object) -> Settings:
    """The good configuration with values set at paths whose dots are written as `__`."""
    return load(changed({key.replace("__", "."): value for key, value in changes.items()}), stack="case")


@pytest.mark.parametrize("stack", STACKS)
def test_shipped_stacks_load_and_hold_their_targets(stack: str) -> None:
    settings = load_stack_file(ROOT / f"Pulumi.{stack}.yaml")
    assert settings.stack == stack
    assert settings.cluster_name == f"srvmod-{stack}"
    assert settings.sizing.holds
    assert settings.sizing.max_nodes >= settings.sizing.min_nodes


def test_shipped_networks_differ() -> None:
    """VPCs of one company may be peered."""
    cidrs = {load_stack_file(ROOT / f"Pulumi.{stack}.yaml").network.cidr for stack in STACKS}
    assert len(cidrs) == len(STACKS)


def test_prod_declares_the_specification_and_needs_more_than_one_node() -> None:
    prod = load_stack_file(ROOT / "Pulumi.prod.yaml")
    assert (prod.traffic.sessions, prod.traffic.tokens_per_second) == (650, 28_000)
    assert prod.sizing.min_nodes > 1
    assert prod.plan.tokens_per_second >= 28_000
    assert prod.cluster.deletion_protection


def test_local_is_simulated_with_two_engines_and_existing_charts() -> None:
    local = load_stack_file(ROOT / "Pulumi.local.yaml")
    assert local.aws.simulated
    assert local.engine.kind == "simulated"
    assert local.sizing.min_engines == 2
    assert local.charts.keda is ChartMode.EXISTING


def test_defaults() -> None:
    settings = good()
    assert settings.network.nat_gateways is NatGateways.PER_ZONE
    assert (settings.slo.itl_p95_ms, settings.slo.ttft_ms) == (30, 350)
    assert (settings.engine.tensor_parallel_size, settings.engine.engines_per_node) == (4, 2)
    assert settings.kv_block_tokens == 16
    own = f"444455556666.dkr.ecr.us-east-1.amazonaws.com/{settings.cluster_name}/weight-cache:"
    assert settings.weight_cache_image.startswith(own)


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError):
        good().traffic.sessions = 1  # type: ignore[misc]


def test_without_scales_the_kv_cache_is_bf16_and_the_plan_is_made_again() -> None:
    with_scales, without = good(model__kvScales=True), good(model__kvScales=False)
    assert with_scales.model.effective_kv_cache_dtype is KvCacheDtype.FP8
    assert without.model.effective_kv_cache_dtype is KvCacheDtype.BF16
    assert without.plan.engines >= with_scales.plan.engines
    assert without.plan.kv_room.tokens < with_scales.plan.kv_room.tokens


def test_fewer_engines_than_the_plan_are_allowed_and_visible() -> None:
    settings = good(engine__minEngines=2)
    assert settings.sizing.min_engines == 2 < settings.plan.engines
    assert not settings.sizing.holds
    assert settings.sizing.missed


def test_sequence_limit_holds_the_sessions_of_a_lost_engine_and_fits_the_graphs() -> None:
    sizing = good().sizing
    assert sizing.max_num_seqs * (sizing.min_engines - 1) >= 650
    assert sizing.max_num_seqs % 8 == 0
    assert sizing.cudagraph_capture_size >= sizing.max_num_seqs


def test_real_vllm_on_simulated_aws_uses_the_block_size_of_cpus() -> None:
    changes = {
        "aws__accountId": "123456789012",
        "aws__simulated": True,
        "aws__podEndpoint": "http://10.88.0.1:5000",
        "charts__keda": "existing",
        "charts__loadBalancerController": "existing",
        "charts__prometheusStack": "existing",
        "monitoring__alertTopicArn": None,
    }
    assert good(**changes).kv_block_tokens == 32


def test_zone_that_somebody_vouches_for() -> None:
    west = {
        "aws__region": "us-west-1",
        "network__zones": ["us-west-1a", "us-west-1b", "us-west-1c"],
        "pool__zones": ["us-west-1c"],
    }
    with pytest.raises(SettingsError, match="us-west-1c"):
        good(**west)
    assert good(**west, pool__offeredZones=["us-west-1c"]).pool.zones == ("us-west-1c",)


def test_keys_of_other_namespaces_and_of_pulumi_are_passed_over(tmp_path: Path) -> None:
    file = write(GOOD, tmp_path)
    file.write_text("encryptionsalt: v1:x\n" + file.read_text() + "  aws:region: eu-west-2\n")
    assert load_stack_file(file).aws.region == "us-east-1"


def test_encrypted_api_keys_are_passed_over(tmp_path: Path) -> None:
    file = write(GOOD, tmp_path)
    file.write_text(file.read_text() + "  srvmod:apiKeys:\n    secure: v1:ciphertext\n")
    assert load_stack_file(file).stack == "case"


def test_api_keys_in_the_clear_are_refused_and_not_shown(tmp_path: Path) -> None:
    file = write(GOOD, tmp_path)
    file.write_text(file.read_text() + "  srvmod:apiKeys:\n    web: sk-123456\n")
    with pytest.raises(SettingsError, match="secret in the clear") as caught:
        load_stack_file(file)
    assert "sk-123456" not in str(caught.value)
    assert "line " in caught.value.problems[0].place


def test_a_misplaced_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_stack_file(write(changed({"apikeys": {"web": "sk-123456"}, "gateway.apiKey": "sk-654321"}), tmp_path))
    assert "did you mean 'apiKeys'?" in str(caught.value)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no mapping 'config'"),
        ("config: []", "has no mapping 'config'"),
        ("config: {a: 1, a: 2", "isn't YAML in line 1"),
        ("config: " + "[" * 5_000, "nested too deep"),
        ("config:\n  srvmod:aws: {region: a}\n  srvmod:aws: {region: b}\n", "given twice"),
        ("config:\n  srvmod:tags: &t {a: *t}\n", "refers to itself"),
        ("config: !!python/object:os.system {}", "isn't YAML"),
    ],
)
def test_files_that_are_no_stack(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.case.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_stack_file(file)
    assert says in str(caught.value)


def test_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load_stack_file(tmp_path / "Pulumi.none.yaml")


def test_scalars_are_read_as_pulumi_reads_them(tmp_path: Path) -> None:
    """No dates, no `yes`, no base-60 numbers: those would be other values in `pulumi up`."""
    file = tmp_path / "Pulumi.case.yaml"
    text = write(GOOD, tmp_path).read_text().replace("'2026-09-15'", "2026-09-15")
    file.write_text(text.replace("inference-tls", "yes"))
    settings = load_stack_file(file)
    assert (settings.model.revision, settings.gateway.tls_secret) == ("2026-09-15", "yes")


def test_memory_is_planned_with_the_limits_that_are_deployed() -> None:
    sizing = good().sizing
    layout = sizing.plan.layout
    assert (layout.max_num_seqs, layout.graph_rows) == (sizing.max_num_seqs, sizing.cudagraph_capture_size)
    assert sizing.plan.kv_room == kv_room(LLAMA_3_70B, layout)
    assert sizing.plan.sessions_per_engine <= sizing.plan.most_sessions_per_engine <= layout.max_num_seqs


def test_an_override_is_predicted_with_its_own_limits() -> None:
    """Two engines for 650 sessions get a limit of 976, whose logits and graphs take memory from the contexts."""
    sizing = good(engine__minEngines=2).sizing
    assert sizing.max_num_seqs == 976
    mix, layout = sizing.plan.traffic, replace(sizing.plan.layout, max_num_seqs=976, graph_rows=976)
    assert sizing.prediction == predict(mix, LLAMA_3_70B, layout, 325)
    assert sizing.prediction.kv_share > predict(mix, LLAMA_3_70B, sizing.plan.layout, 144).kv_share * 325 / 144


def test_many_sessions_on_few_engines_raise_the_limit_and_plan_again() -> None:
    """Short contexts and slack targets: an engine carries more than the 512 sequences that a plan begins with."""
    layout = Layout(max_num_batched_tokens=8_192)
    planned = plan_limited(Traffic(4_000, 16, 512), LLAMA_3_70B, layout, Slo(Milliseconds(200), Milliseconds(2_000)))
    assert planned.sessions_per_engine > 512
    assert planned.layout.max_num_seqs >= planned.sessions_per_engine
    assert planned.kv_room == kv_room(LLAMA_3_70B, planned.layout)


def test_a_limit_beyond_the_token_budget_is_told_of_the_budget() -> None:
    with pytest.raises(SettingsError, match=r"maxNumBatchedTokens = 2048: is less than the sequence limit of 90000"):
        good(traffic__sessions=60_000, engine__minEngines=2)
