"""GPU device plugins and operators: MIG, time-slicing and other ways to give out less than whole GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.policies.facts import Known, Setting
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.templates import Template
from srvmod.policies.readers.tree import Cursor, Scalar, place_in_text
from srvmod.policies.readers.yamltext import BadText, documents

MIG_LABELS = ("nvidia.com/mig.config", "nvidia.com/mig.strategy")


def of_config_map(thing: KubeObject) -> Iterator[Setting]:
    """Configurations of NVIDIA's device plugin in a ConfigMap."""
    for _, child in thing.root["data"].entries():
        text = child.raw()
        if not ("timeSlicing" in text or "migStrategy" in text or "mps:" in text):
            continue
        try:
            roots = [document.root for document in documents(text)]
        except BadText:
            continue
        for node in roots:
            root = Cursor(node, child.place)
            for kind in ("timeSlicing", "mps"):
                for resource in root.at("sharing", kind, "resources").items():
                    replicas = resource["replicas"]
                    if replicas.raw() not in {"", "1"}:
                        place = place_in_text(child, (replicas.place.line or 1) - 1)
                        yield Setting("time-slicing", Known(f"{kind} with {replicas.raw()} replicas", place))
            mig = root.at("flags", "migStrategy")
            if mig.raw() not in {"", "none"}:
                yield Setting("mig", Known(mig.raw(), place_in_text(child, (mig.place.line or 1) - 1)))


def of_cluster_policy(thing: KubeObject) -> Iterator[Setting]:
    """The GPU operator's ClusterPolicy."""
    if "nvidia" in thing.api_version:
        # The operator's default, `single`, divides nothing by itself: `mixed` is chosen to divide.
        strategy = thing.root.at("spec", "mig", "strategy").string()
        if isinstance(strategy, Known) and strategy.value == "mixed":
            yield Setting("mig", strategy)


def of_template(template: Template) -> Iterator[Setting]:
    """A device plugin's own container."""
    for container in template.spec["containers"].items():
        if "device-plugin" not in container["image"].raw():
            continue
        for one in container["env"].items():
            if one["name"].raw() == "MIG_STRATEGY" and one["value"].raw() not in {"", "none"}:
                yield Setting("mig", Known(one["value"].raw(), one.place))
        for key in ("command", "args"):
            items = list(container[key].items())
            for index, item in enumerate(items):
                name, _, value = item.raw().partition("=")
                if name == "--mig-strategy":
                    value = value or (items[index + 1].raw() if index + 1 < len(items) else "")
                    if value not in {"", "none"}:
                        yield Setting("mig", Known(value, item.place))


def of_labels(labels: Cursor) -> Iterator[Setting]:
    """Node labels that ask the operator to divide GPUs or to share them."""
    for key, child in labels.entries():
        value = child.raw()
        if key in MIG_LABELS and value not in {"", "none", "all-disabled"} and isinstance(child.node, Scalar):
            yield Setting("mig", Known(value, child.place))
