"""The contract with other teams: what is exported follows the committed schema, and changes need a new version."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from srvmod.infra.outputs import CONTRACT_VERSION
from srvmod.infra.outputs.schema import COMMITTED, outputs_schema, outputs_schema_text
from tests.infra.environment import ENVIRONMENTS, ROOT, graph

pytestmark = pytest.mark.filterwarnings("ignore:.*has been deprecated in favor of:DeprecationWarning")
VERSION_1 = Path(__file__).with_name("outputs_version_1.json")
"""Every output of version 1 and its JSON type. Adding to it is free; taking away or retyping is version 2."""


def shape(schema: dict[str, Any], defs: dict[str, Any]) -> Any:
    """Names and types of a schema, without prose."""
    if "$ref" in schema:
        return shape(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return sorted(str(shape(part, defs)) for part in schema["anyOf"])
    if schema.get("type") == "object":
        return {name: shape(part, defs) for name, part in sorted(schema["properties"].items())}
    if schema.get("type") == "array":
        return [shape(schema["items"], defs)]
    return schema["type"]


def missing(old: Any, new: Any, path: str = "") -> list[str]:
    """What `old` promised that `new` doesn't keep."""
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{path}{name}" for name in old if name not in new]
        return gone + [
            found for name in old if name in new for found in missing(old[name], new[name], f"{path}{name}.")
        ]
    return [] if old == new else [f"{path.rstrip('.')}: {old} is now {new}"]


def test_committed_schema_is_fresh() -> None:
    assert (ROOT / COMMITTED).read_text(encoding="utf-8") == outputs_schema_text(), (
        "run: python -m srvmod.infra.outputs.schema"
    )


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_outputs_follow_the_schema(env: str) -> None:
    jsonschema.Draft202012Validator(outputs_schema()).validate(graph(env).outputs)


def test_version_1_is_kept() -> None:
    schema = outputs_schema()
    promised = json.loads(VERSION_1.read_text(encoding="utf-8"))
    assert CONTRACT_VERSION == 1
    assert missing(promised, shape(schema, schema["$defs"])) == []


def test_a_taken_or_retyped_output_is_noticed() -> None:
    promised = {"a": "string", "b": {"c": "integer", "d": "number"}}
    assert missing(promised, {"a": "string", "b": {"c": "number"}}) == ["b.d", "b.c: integer is now number"]
    assert missing(promised, {**promised, "e": "string"}) == []


def test_every_output_says_what_it_means() -> None:
    schema = outputs_schema()
    for definition in (schema, *schema["$defs"].values()):
        for name, field in definition["properties"].items():
            described = field.get("description") or "$ref" in field
            assert described, name


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_nothing_secret_is_exported(env: str) -> None:
    text = json.dumps(graph(env).outputs)
    assert "placeholder-key-of" not in text
    assert "kubeconfig" not in text
