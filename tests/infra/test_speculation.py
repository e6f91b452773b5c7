"""Speculative decoding: off by default; a stack that asks for it drafts only in batches where it pays."""

import copy
import json
from itertools import pairwise
from typing import Any

import pytest

from srvmod.capacity.speculation import draft_bound
from srvmod.infra.serving.documents.engine_flags import Drafting
from srvmod.infra.settings import Settings, SettingsError
from srvmod.infra.settings.loading import load
from srvmod.policies.engine_versions import table
from srvmod.policies.rules.speculation import largest_drafted, schedule_of
from tests.infra.bad_configs.base import GOOD


def stack(engine: dict[str, Any] | None = None, **speculation: Any) -> Settings:
    raw = copy.deepcopy(GOOD)
    raw["engine"].update(engine or {})
    raw["engine"]["speculation"] = {"method": "draft_model", **speculation}
    return load(raw, stack="staging")


def flag_of(settings: Settings) -> Drafting:
    batches = [(one.first, one.last, one.tokens) for one in settings.sizing.drafts]
    return Drafting("draft_model", "/models/r/draft", batches)


def test_off_by_default() -> None:
    settings = load(copy.deepcopy(GOOD), stack="staging")
    assert settings.engine.speculation is None
    assert settings.sizing.drafts == ()


def test_the_schedule_covers_every_batch_and_ends_where_it_does_not_pay() -> None:
    settings = stack()
    drafts, limit = settings.sizing.drafts, settings.sizing.max_num_seqs
    assert (drafts[0].first, drafts[-1].last) == (1, limit)
    assert all(later.first == earlier.last + 1 for earlier, later in pairwise(drafts))
    tokens = [one.tokens for one in drafts]
    assert tokens == sorted(tokens, reverse=True)
    assert max(one.last for one in drafts if one.tokens) <= draft_bound()


def test_the_policies_take_what_the_program_writes_and_the_version_knows_the_flag() -> None:
    for sessions in (650, 2_600):
        raw = copy.deepcopy(GOOD)
        raw["traffic"]["sessions"] = sessions
        raw["engine"].update({"minEngines": 4, "speculation": {"method": "draft_model"}})
        settings = load(raw, stack="staging")
        batches = schedule_of(flag_of(settings).config)
        assert not isinstance(batches, str)
        assert (largest_drafted(batches, settings.sizing.max_num_seqs) or 0) <= draft_bound()
    assert "speculative_config" in table("0.33.0").by_dest
    methods = table("0.33.0").by_dest["spec_method"].choices
    assert {"draft_model", "eagle3"} <= set(methods)


def test_the_flags_value_ends_with_the_last_entry() -> None:
    text = flag_of(stack()).config
    assert json.loads(text)["num_speculative_tokens"] == 3
    assert text.endswith("]]}")


def test_checked_drafts_stay_in_the_cuda_graph() -> None:
    sizing = stack(tokens=5, acceptance=0.9).sizing
    assert sizing.cudagraph_capture_size >= max(one.last * (one.tokens + 1) for one in sizing.drafts)
    assert sizing.cudagraph_capture_size % 8 == 0


@pytest.mark.parametrize(
    ("engine", "speculation", "key", "said"),
    [
        ({}, {"method": "ngram"}, "method", "draft_model or eagle3"),
        ({}, {"draftModel": "meta-llama/Llama-3-1B"}, "draftModel", "doesn't exist"),
        ({}, {"tokens": 9}, "tokens", "1 to 5"),
        ({}, {"acceptance": 1.0}, "acceptance", "less than 1"),
        ({}, {"acceptance": 0.01}, "acceptance", "no batch faster"),
        ({}, {"draftFolder": "../other"}, "draftFolder", "folder in the revision"),
        ({"kind": "simulated"}, {}, "speculation", "simulated engine"),
        ({"extraArgs": ["--speculative-config={}"]}, {}, "extraArgs[0]", "engine.speculation"),
    ],
)
def test_what_a_stack_can_not_ask_for(engine: dict[str, Any], speculation: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        stack(engine, **speculation)
    assert any(problem.key.endswith(key) for problem in caught.value.problems), str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("method", ["draft_model", "eagle3"])
def test_drafts_take_room_from_the_contexts(method: str) -> None:
    plain, drafting = load(copy.deepcopy(GOOD), stack="staging").sizing, stack(method=method).sizing
    assert drafting.plan.kv_room.tokens < plain.plan.kv_room.tokens
    assert drafting.prediction.kv_share > plain.prediction.kv_share
    assert drafting.plan.engines >= plain.plan.engines
