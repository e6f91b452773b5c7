"""`engine.started: false`: everything is made, and nothing asks for a GPU node."""

import json
from pathlib import Path

import yaml

from srvmod.infra.render.environments import graph_of
from srvmod.infra.settings import load_stack_file
from tests.infra.environment import ROOT, graph

GPU = '"nvidia.com/gpu"'


def asking(found: object) -> set[str]:
    """Workloads whose pods request a GPU."""
    return {
        resource.name
        for resource in found.resources.values()  # type: ignore[attr-defined]
        if "spec" in resource.inputs and "template" in resource.inputs["spec"]
        if GPU in json.dumps([c.get("resources", {}) for c in containers(resource.inputs)])
    }


def containers(document: dict[str, object]) -> list[dict[str, object]]:
    spec = document["spec"]["template"].get("spec", {})  # type: ignore[index]
    return [*spec.get("containers", []), *spec.get("initContainers", [])]


def test_nothing_asks_for_a_gpu_and_the_rest_is_the_same(tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "Pulumi.prod.yaml").read_text(encoding="utf-8"))
    document["config"]["srvmod:engine"]["started"] = False
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    waiting, running = graph_of(load_stack_file(file)), graph("prod")
    assert asking(running) == {"engines"}
    assert asking(waiting) == set()
    gone = set(running.resources) - set(waiting.resources)
    # What measures and scales engines would only report that there are none.
    watched = {urn.rpartition("::")[2] for urn in gone if "Alerts" in urn or "Autoscaling" in urn}
    assert {"scaler", "alerts-rules", "alerts-route"} < watched
    assert {urn.rpartition("::")[2] for urn in gone} - watched == {"engines"}
    assert waiting.outputs["plan"] == running.outputs["plan"]
