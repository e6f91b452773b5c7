"""What all sections share: frozen models with YAML's camelCase keys, and types that say what they allow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


class Section(BaseModel):
    """A part of a stack's settings. Immutable; keys that it doesn't have are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True)
class Allowed:
    """Says in words what a value may be: any failure of the type it annotates is reported with these words."""

    words: str
    also: Callable[[Any], bool] | None = None
    """A check beyond what the type itself expresses."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Wrap the type's own validation."""

        def check(value: object, inner: core_schema.ValidatorFunctionWrapHandler) -> object:
            try:
                result = inner(value)
            except ValidationError:
                raise self.error() from None
            if self.also is not None and not self.also(result):
                raise self.error()
            return result

        return core_schema.no_info_wrap_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Put the words into the schema, where editors show them."""
        result = handler(schema)
        result["x-allowed"] = self.words
        return result

    def error(self) -> PydanticCustomError:
        """The one error that stands for every way a value can be wrong."""
        return PydanticCustomError("not_allowed", "isn't allowed", {"allowed": self.words})


LIST = Field(strict=False)
"""Metadata of a list: strict mode would take only a tuple once `Allowed` has seen the value."""


def _unique(values: tuple[object, ...]) -> bool:
    return len(set(values)) == len(values)


NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"

Name = Annotated[str, Field(pattern=NAME), Allowed("lower-case letters, digits and '-', at most 63 characters")]
HostName = Annotated[
    str,
    Field(pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$", max_length=253),
    Allowed("a DNS name in lower case, such as inference.example.com"),
]
Zone = Annotated[
    str,
    Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$"),
    Allowed("an availability zone's name, such as us-east-1a"),
]
InstanceTypeName = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"), Allowed("an EC2 instance type, such as m7i.xlarge")
]
ImageReference = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
        r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$",
        max_length=512,
    ),
    Allowed(
        "an image with its registry and a fixed tag or digest, such as docker.io/vllm/vllm-openai:v0.33.0; "
        "not 'latest'",
        also=lambda ref: _is_pinned(str(ref)),
    ),
]
TAG_CHARACTERS = "letters, digits, spaces, or any of .:/=+@_-"
TagKey = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_.:/=+@ -]+$", max_length=128),
    Allowed(f"a key of 1 to 128 {TAG_CHARACTERS}"),
]
TagValue = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_.:/=+@ -]*$", max_length=256),
    Allowed(f"text in quotes, at most 256 {TAG_CHARACTERS}"),
]
Names = Annotated[
    tuple[Name, ...],
    LIST,
    Field(min_length=1),
    Allowed("a list of different names, at least one", also=_unique),
]


def _is_pinned(reference: str) -> bool:
    """Whether a reference has a digest or a tag other than `latest`."""
    if "@sha256:" in reference:
        return True
    _, colon, tag = reference.rpartition("/")[2].partition(":")
    return bool(colon) and tag != "latest"


def count(least: int, most: int) -> tuple[Any, Any]:
    """Metadata for a whole number within bounds."""
    return Field(ge=least, le=most), Allowed(f"a whole number from {least:,} to {most:,}")
