"""A good configuration, what a bad case is, and how cases change the good one."""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

DELETE = object()
"""As a change's value: take the key away."""

GOOD: dict[str, Any] = {
    "aws": {"accountId": "444455556666", "region": "us-east-1"},
    "network": {"cidr": "10.60.0.0/16", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
    "cluster": {"admins": [{"principalArn": "arn:aws:iam::444455556666:role/admins"}]},
    "pool": {"zones": ["us-east-1a", "us-east-1b"]},
    "model": {"revision": "2026-09-15", "kvScales": True},
    "traffic": {"sessions": 650, "promptTokens": 512, "outputTokens": 512, "tokensPerSecond": 28000},
    "engine": {"image": "docker.io/vllm/vllm-openai:v0.33.0"},
    "gateway": {"tlsSecret": "inference-tls", "hostname": "inference.example.com"},
    "monitoring": {"alertTopicArn": "arn:aws:sns:us-east-1:444455556666:llm-on-call"},
}

SIMULATED: dict[str, Any] = {
    "aws.accountId": "123456789012",
    "aws.simulated": True,
    "aws.podEndpoint": "http://10.88.0.1:5000",
    "charts.keda": "existing",
    "charts.loadBalancerController": "existing",
    "charts.prometheusStack": "existing",
    "monitoring.alertTopicArn": DELETE,
}
"""Changes that make the good configuration one for simulated AWS."""


@dataclass(frozen=True)
class Case:
    """A bad configuration and what its one problem must say.

    `value` and `allowed` are parts of the problem's text; `line` is a part of the line that the problem must point
    to, the text after the key's last dot when left out.
    """

    name: str
    changes: dict[str, Any] = field(hash=False)
    key: str
    value: str
    allowed: str
    line: str | None = None
    stack: str = "case"


class _Plain(yaml.SafeDumper):
    """Writes repeated values out, as people do."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The good configuration with values set, or taken away, at dotted paths."""
    config = copy.deepcopy(GOOD)
    for path, value in changes.items():
        *above, last = path.split(".")
        target = config
        for part in above:
            target = target.setdefault(part, {})
        if value is DELETE:
            del target[last]
        else:
            target[last] = value
    return config


def write(config: dict[str, Any], folder: Path, stack: str = "case") -> Path:
    """The configuration as a stack's file, block style, one key a line."""
    file = folder / f"Pulumi.{stack}.yaml"
    document = {"config": {f"srvmod:{name}": section for name, section in config.items()}}
    file.write_text(yaml.dump(document, Dumper=_Plain, sort_keys=False), encoding="utf-8")
    return file
