"""From a recorded graph to files: one per Kubernetes object, chart's values and IAM document."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from srvmod.infra.render.recorder import Graph, Recorded

RELEASE = "kubernetes:helm.sh/v3:Release"
RULE_GROUPS = "aws:amp/ruleGroupNamespace:RuleGroupNamespace"
DOCUMENTS: Mapping[str, str] = {
    "aws:iam/role:Role": "assumeRolePolicy",
    "aws:iam/policy:Policy": "policy",
    "aws:kms/key:Key": "policy",
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:sqs/queuePolicy:QueuePolicy": "policy",
}
"""Types with a document in IAM's policy language, and the argument that holds it."""

HEADER = "# Rendered by `srvmod render`; edits are lost. Change the program or Pulumi.{env}.yaml instead.\n"


def files(graph: Graph, env: str) -> dict[str, str]:
    """Path below `manifests/<env>/` to content, sorted. Identical graphs give identical bytes."""
    out: dict[str, str] = {}
    for urn in sorted(graph.resources):
        for path, content in _files_of(graph.resources[urn], env):
            if path in out:
                raise ValueError(f"{path}: two objects would be written to it; fix: give one another name")
            out[path] = content
    return dict(sorted(out.items()))


def _files_of(resource: Recorded, env: str) -> Iterator[tuple[str, str]]:
    inputs = resource.inputs
    if resource.type == RELEASE:
        name = inputs["name"]
        yield f"charts/{name}.yaml", _yaml(_chart(inputs), env)
        if inputs.get("values"):
            yield f"charts/{name}.values.yaml", _yaml(_sorted(inputs["values"], top=False), env)
    elif resource.type.startswith("kubernetes:") and "kind" in inputs:
        metadata = inputs["metadata"]
        folder = metadata.get("namespace", "cluster")
        yield f"{folder}/{inputs['kind'].lower()}-{metadata['name']}.yaml", _yaml(_object(inputs), env)
    elif resource.type == RULE_GROUPS:
        yield f"prometheus/{inputs['name']}.rules.yaml", HEADER.format(env=env) + inputs["data"]
    elif resource.type in DOCUMENTS:
        kind = _kebab(resource.type.rpartition(":")[2])
        yield f"iam/{kind}-{resource.name}.json", _json(inputs[DOCUMENTS[resource.type]])


def _chart(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What is installed: a chart's objects are its authors' to render."""
    keys = ("name", "namespace", "chart", "version", "repositoryOpts")
    return {key: inputs[key] for key in keys if key in inputs}


def _object(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The object as it is applied, its identity first."""
    first = {key: inputs[key] for key in ("apiVersion", "kind", "metadata")}
    return {**first, **{key: inputs[key] for key in sorted(inputs) if key not in first}}


def _yaml(document: Mapping[str, Any], env: str) -> str:
    return HEADER.format(env=env) + yaml.dump(
        _sorted(document), Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110, allow_unicode=True
    )


def _json(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def _sorted(value: Any, *, top: bool = True) -> Any:
    """Keys in order; the top level keeps its own (identity first)."""
    if isinstance(value, Mapping):
        keys = list(value) if top else sorted(value)
        return {key: _sorted(value[key], top=False) for key in keys}
    if isinstance(value, list):
        return [_sorted(item, top=False) for item in value]
    return value


class _Dumper(yaml.CSafeDumper):
    """Without aliases, and with text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        """Rendered files repeat themselves rather than refer."""
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
