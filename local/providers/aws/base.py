"""What a resource type is: its arguments after AWS's schema, its outputs, and four functions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from srvmod.local.providers.aws import schemas
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.values import DEFAULTS, Props, unknown


@dataclass(frozen=True)
class Arg:
    """One argument.

    ``cfn`` is its property in the CloudFormation schema (relative to the parent's), from which replacement and
    allowed values follow. ``identity`` says that it names the resource where the schema has no such property.
    """

    cfn: str | None = None
    required: bool = False
    identity: bool = False
    unordered: bool = False
    document: bool = False
    of: Mapping[str, Arg] | None = None


TAGS: dict[str, Arg] = {"tags": Arg("Tags")}


class HalfMade(Exception):  # noqa: N818 - a state, reported to the engine so that it isn't forgotten
    """The thing exists with this id, but a later step of its creation was refused."""

    def __init__(self, identity: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.identity = identity


@contextmanager
def half_made(identity: str) -> Iterator[None]:
    """Steps after the call that made ``identity``: when one is refused, the engine still learns of the thing."""
    try:
        yield
    except Refused as error:
        raise HalfMade(identity, error) from error


class Resource:
    """A type. Subclasses are stateless; `create`, `read`, `update`, `delete` call the simulated AWS."""

    token: ClassVar[str]
    cfn: ClassVar[str]
    args: ClassVar[Mapping[str, Arg]]
    outputs: ClassVar[tuple[str, ...]] = ()
    absent: ClassVar[tuple[str, ...]] = ()
    """Outputs of Pulumi's class that stay empty here: not simulated, or empty for what the arguments can make."""
    nested_outputs: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Computed properties inside argument blocks."""
    autoname: ClassVar[str | None] = None
    longest_name: ClassVar[int] = 255

    @abstractmethod
    def create(self, aws: Aws, props: Props) -> str:
        """Make it and give its id. Raises Refused."""

    @abstractmethod
    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        """Its state now: outputs, and arguments as they are; None when it is gone."""

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        """Change it in place. Types without changeable arguments don't have this."""
        raise NotImplementedError(f"{self.token} can't be changed in place")

    @abstractmethod
    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        """Take it away; a missing one is fine (Refused with `missing`)."""

    # -- what the table says ------------------------------------------------------------------------------------
    def problems(self, props: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """(argument, reason) for what isn't handled here, missing, or against AWS's schema."""
        yield from self._problems(self.args, props, "", "")

    def _problems(
        self, args: Mapping[str, Arg], props: Mapping[str, Any], at: str, cfn: str
    ) -> Iterator[tuple[str, str]]:
        for name, arg in args.items():
            if arg.required and name not in props:
                yield f"{at}{name}", "is required"
        for name, value in props.items():
            if name == DEFAULTS:
                continue
            if name not in args:
                handled = ", ".join(sorted(args))
                yield f"{at}{name}", f"isn't handled by the simulated {self.token} (handled: {handled})"
                continue
            if unknown(value) and not isinstance(value, dict | list):
                continue
            arg = args[name]
            path = f"{cfn}{arg.cfn}" if arg.cfn else None
            if arg.of is not None:
                for index, item in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(item, Mapping):
                        here = f"{at}{name}[{index}]." if isinstance(value, list) else f"{at}{name}."
                        yield from self._problems(arg.of, item, here, f"{path}/" if path else "")
            elif arg.document:
                yield from _not_json(f"{at}{name}", value)
            elif path and not unknown(value):
                yield from ((f"{at}{name}", reason) for reason in schemas.violations(self.cfn, path, value))

    def changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, bool]:
        """Changed property path -> whether it needs a new resource."""
        return dict(self._changes(self.args, old, new, "", "", False))

    def _changes(  # noqa: PLR0917 - a recursion over two trees
        self, args: Mapping[str, Arg], old: Mapping[str, Any], new: Mapping[str, Any], at: str, cfn: str, replace: bool
    ) -> Iterator[tuple[str, bool]]:
        for name in sorted({*old, *new} - {DEFAULTS}):
            before, after, arg = old.get(name), new.get(name), args.get(name, Arg())
            if same(before, after, arg):
                continue
            path = f"{cfn}{arg.cfn}" if arg.cfn else None
            new_one = replace or arg.identity or (path in schemas.create_only(self.cfn) if path else False)
            if arg.of is not None and isinstance(before, dict) and isinstance(after, dict):
                yield from self._changes(arg.of, before, after, f"{at}{name}.", f"{path}/" if path else "", new_one)
            else:
                yield f"{at}{name}", new_one or self._holds_create_only(arg, path, before, after)

    def _holds_create_only(self, arg: Arg, path: str | None, before: Any, after: Any) -> bool:
        """A block that comes, goes or is a list replaces when a create-only property in it differs."""
        if arg.of is None or path is None:
            return False
        return any(
            f"{path}/{inner.cfn}" in schemas.create_only(self.cfn) and _pick(before, name) != _pick(after, name)
            for name, inner in arg.of.items()
            if inner.cfn
        )


def _pick(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_pick(v, name) for v in value]
    return value.get(name) if isinstance(value, Mapping) else None


def _not_json(name: str, value: Any) -> Iterator[tuple[str, str]]:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        yield name, f"isn't JSON: {error}"


def same(before: Any, after: Any, arg: Arg) -> bool:
    """Whether two values of an argument mean the same."""
    if before == after:
        return True
    if arg.unordered and isinstance(before, list) and isinstance(after, list):
        return sorted(map(str, before)) == sorted(map(str, after))
    if arg.document and isinstance(before, str) and isinstance(after, str):
        try:
            return bool(json.loads(before) == json.loads(after))
        except ValueError:
            return False
    return False


def as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as most services take them."""
    return [{"Key": k, "Value": v} for k, v in tags.items()]


def as_map(tags: Any) -> dict[str, str]:
    """Tags as most services give them, without AWS's own."""
    return {t["Key"]: t["Value"] for t in tags or [] if not t["Key"].startswith("aws:")}


def tag_changes(aws: Aws, old: Props, new: Props) -> tuple[dict[str, str], list[str]]:
    """(tags to set, keys to remove) that lead from ``old`` to ``new``."""
    before, after = {**old.get("tagsAll", {}), **aws.tags(old)}, aws.tags(new)
    return {k: v for k, v in after.items() if before.get(k) != v}, sorted(set(before) - set(after))
