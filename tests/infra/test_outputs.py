"""The contract with other teams: what is exported follows the committed schema, and changes need a new version."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from srvmod.infra.outputs import CONTRACT_VERSION
from srvmod.infra.outputs.schema import COMMITTED, outputs_schema, outputs_schema_text
from tests.infra.environment import ENVIRONMENTS, ROOT, graph, settings_of


def promised(version: int) -> dict[str, Any]:
    """Every output of a version of the contract and its JSON type.

    Adding an output adds it to the newest file; taking one away or retyping it needs the next version and its file.
    """
    return json.loads(Path(__file__).with_name(f"outputs_version_{version}.json").read_text(encoding="utf-8"))


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


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Path of every output, groups among them."""
    for name, inner in tree.items():
        yield (*path, name)
        if isinstance(inner, dict):
            yield from leaves(inner, (*path, name))


def current() -> dict[str, Any]:
    schema = outputs_schema()
    return shape(schema, schema["$defs"])


def test_committed_schema_is_fresh() -> None:
    assert (ROOT / COMMITTED).read_text(encoding="utf-8") == outputs_schema_text(), (
        "run: python -m srvmod.infra.outputs.schema"
    )


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_outputs_follow_the_schema(env: str) -> None:
    jsonschema.Draft202012Validator(outputs_schema()).validate(graph(env).outputs)


def test_the_version_is_kept() -> None:
    lost = missing(promised(CONTRACT_VERSION), current())
    assert lost == [], "raise CONTRACT_VERSION in infra/outputs/contract.py, or keep these outputs"


def test_new_outputs_are_promised_from_now_on() -> None:
    new = missing(current(), promised(CONTRACT_VERSION))
    assert new == [], f"add these to tests/infra/outputs_version_{CONTRACT_VERSION}.json: they are promised from now on"


def test_a_version_is_raised_only_for_a_loss() -> None:
    for version in range(2, CONTRACT_VERSION + 1):
        assert missing(promised(version - 1), promised(version)), f"version {version} takes nothing away"


@pytest.mark.parametrize("path", list(leaves(promised(CONTRACT_VERSION))), ids=".".join)
def test_a_taken_or_retyped_output_is_noticed(path: tuple[str, ...]) -> None:
    taken, retyped = copy.deepcopy(current()), copy.deepcopy(current())
    for changed, change in ((taken, None), (retyped, "another type")):
        group = changed
        for name in path[:-1]:
            group = group[name]
        if change is None:
            del group[path[-1]]
        else:
            group[path[-1]] = change
        assert any(found.startswith(".".join(path)) for found in missing(promised(CONTRACT_VERSION), changed))


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


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_what_a_consumer_needs_is_there(env: str) -> None:
    outputs, settings = graph(env).outputs, settings_of(env)
    assert outputs["auth"]["keysIn"] in outputs["auth"]["howToGetAKey"]
    assert outputs["auth"]["keysIn"] in outputs["arns"]["apiKeys"]
    assert outputs["limits"]["paths"]
    assert outputs["slo"]["itlP95Ms"] == settings.slo.itl_p95_ms
    installed = settings.charts.prometheus_stack.value == "install"
    assert (outputs["dashboards"]["prometheus"] is not None) == installed
    assert (outputs["plan"]["missed"] == []) == outputs["plan"]["holds"]
