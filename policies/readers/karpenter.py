"""Karpenter's pools and node classes, and the kubelet settings that user data carries."""

from __future__ import annotations

import email
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from srvmod.policies.facts import Known, Maybe, NodeClass, Pool, Taint, Unknown
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.pods import requirement
from srvmod.policies.readers.tree import Cursor, Mapping, place_in_text
from srvmod.policies.readers.yamltext import BadText, documents

KUBELET_FLAG = r"--{}[= ]['\"]?([A-Za-z-]+)"
KUBELET_FIELD = r"\b{}\\?[\"']?\s*[:=]\s*\\?[\"']?([A-Za-z-]+)"
"""A field of the kubelet's configuration file as scripts write it: JSON, YAML, or an assignment of jq."""
FULL_CORES = "full-pcpus-only"
FULL_CORES_OPTION = re.compile(rf"{FULL_CORES}\\?[\"']?\s*[:=]\s*\\?[\"']?(true|false)", re.IGNORECASE)
"""The CPU manager's option as flags and configuration files have it."""
SHELL_COMMENT = re.compile(r"(?:^|\s)#")
NAMES = {"topologyManagerPolicy": "topology-manager-policy", "topologyManagerScope": "topology-manager-scope"}


def pool(thing: KubeObject) -> Pool:
    """A NodePool."""
    template = thing.root.at("spec", "template")
    spec = template["spec"]
    return Pool(
        place=thing.place,
        name=thing.name,
        labels=template.at("metadata", "labels").texts(),
        requirements=tuple(requirement(one) for one in spec["requirements"].items()),
        taints=tuple(_taints(spec["taints"])),
        node_class=_node_class_of(spec["nodeClassRef"]),
    )


def _node_class_of(reference: Cursor) -> Maybe[str]:
    """The EC2NodeClass of a pool; the kubelets of other classes are set by whoever runs them."""
    kind = reference["kind"].raw()
    if kind not in {"", "EC2NodeClass"}:
        return Unknown(f"it is a {kind}, whose kubelet settings aren't known here", reference.place)
    return reference["name"].string()


def _taints(cursor: Cursor) -> Iterator[Taint]:
    for one in cursor.items():
        yield Taint(one["key"].raw(), one["value"].raw(), one["effect"].raw())


def node_class(thing: KubeObject) -> NodeClass:
    """An EC2NodeClass: `spec.kubelet` where Karpenter knows the field, else the user data's NodeConfig."""
    spec = thing.root["spec"]
    data = _UserData(spec["userData"])
    data.read()

    def setting(name: str) -> Maybe[str]:
        return spec.at("kubelet", name).string() or data.setting(name)

    return NodeClass(
        place=thing.place,
        name=thing.name,
        topology_policy=setting("topologyManagerPolicy"),
        topology_scope=setting("topologyManagerScope"),
        whole_cores=spec.at("kubelet", "cpuManagerPolicyOptions", FULL_CORES).string() or data.setting(FULL_CORES),
    )


@dataclass
class _UserData:
    """User data in any form that nodes take: NodeConfig, MIME parts, Bottlerocket's TOML, shell with kubelet flags."""

    cursor: Cursor
    found: dict[str, Known[str]] | None = None
    unknown: Unknown | None = None

    def setting(self, name: str) -> Maybe[str]:
        """A kubelet setting; what can't be read may say anything."""
        return (self.found or {}).get(name) or self.unknown

    def read(self) -> None:
        """Find kubelet settings; later parts win, as nodeadm merges them."""
        self.found = {}
        fact = self.cursor.string()
        if isinstance(fact, Unknown):
            self.unknown = fact
        if not isinstance(fact, Known):
            return
        text = fact.value
        for offset, part in self._parts(text):
            if "NodeConfig" in part:
                self._node_config(part, offset)
            elif re.search(r"^\s*(\[settings|settings\.)", part, re.MULTILINE):
                self._bottlerocket(part)
            else:
                self._script(part, offset)

    def _parts(self, text: str) -> Iterator[tuple[int, str]]:
        """(line of its beginning from 0, text) of each part."""
        if not re.search(r"^MIME-Version:|^Content-Type:\s*multipart", text, re.MULTILINE | re.IGNORECASE):
            yield 0, text
            return
        message = email.message_from_string(text.lstrip())
        for part in message.walk():
            if part.is_multipart():
                continue
            content = part.get_payload(decode=True)
            decoded = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
            first = decoded.strip().splitlines()[:1]
            at = text.find(first[0]) if first else 0
            yield text.count("\n", 0, max(at, 0)), decoded

    def _node_config(self, text: str, offset: int) -> None:
        try:
            for document in documents(text):
                root = Cursor(document.root, self.cursor.place)
                if root["kind"].raw() != "NodeConfig":
                    continue
                config = root.at("spec", "kubelet", "config")
                for name in NAMES:
                    value = config[name].string()
                    if isinstance(value, Known):
                        place = place_in_text(self.cursor, offset + (value.place.line or 1) - 1)
                        self._keep(name, Known(value.value, place, value.text))
                option = config["cpuManagerPolicyOptions"][FULL_CORES].string()
                if isinstance(option, Known):
                    place = place_in_text(self.cursor, offset + (option.place.line or 1) - 1)
                    self._keep(FULL_CORES, Known(option.value, place, option.text))
                for flag in root.at("spec", "kubelet", "flags").items():
                    self._flags(flag.raw(), offset)
        except BadText as error:
            self.unknown = Unknown(f"its user data {error.why}", self.cursor.place)

    def _bottlerocket(self, text: str) -> None:
        try:
            content: Any = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.unknown = Unknown(f"its user data isn't TOML: {error}", self.cursor.place)
            return
        kubernetes = cast("dict[str, Any]", content.get("settings", {})).get("kubernetes", {})
        for name, key in NAMES.items():
            value = kubernetes.get(key)
            if isinstance(value, str):
                self._keep(name, Known(value, self.cursor.place, value))
        options = kubernetes.get("cpu-manager-policy-options", [])
        if isinstance(options, list) and FULL_CORES in options:
            self._keep(FULL_CORES, Known("true", self.cursor.place, FULL_CORES))

    def _flags(self, text: str, offset: int) -> None:
        self._found(KUBELET_FLAG, NAMES, text, offset)
        self._options(text, offset)

    def _script(self, text: str, offset: int) -> None:
        """Shell: a flag of the kubelet wins over its configuration file."""
        self._found(KUBELET_FIELD, {name: name for name in NAMES}, text, offset)
        self._flags(text, offset)

    def _options(self, text: str, offset: int) -> None:
        for at, line in enumerate(text.splitlines()):
            for match in FULL_CORES_OPTION.finditer(SHELL_COMMENT.split(line, maxsplit=1)[0]):
                self._keep(FULL_CORES, Known(match[1], place_in_text(self.cursor, offset + at), match[0]))

    def _found(self, pattern: str, names: dict[str, str], text: str, offset: int) -> None:
        """The last of each counts; what stands behind a shell's comment sign doesn't."""
        for name, key in names.items():
            for at, line in enumerate(text.splitlines()):
                for match in re.finditer(pattern.format(key), SHELL_COMMENT.split(line, maxsplit=1)[0]):
                    place = place_in_text(self.cursor, offset + at)
                    self._keep(name, Known(match[1], place, match[1]))

    def _keep(self, name: str, value: Known[str]) -> None:
        if self.found is not None:
            self.found[name] = value


def is_pool(thing: KubeObject) -> bool:
    """Whether an object is a Karpenter NodePool."""
    return thing.kind == "NodePool" and thing.group == "karpenter.sh"


def is_node_class(thing: KubeObject) -> bool:
    """Whether an object is an EC2NodeClass."""
    return thing.kind == "EC2NodeClass" and isinstance(thing.root.node, Mapping)
