"""JSON schema of a stack's file, for editors. `python -m srvmod.infra.settings.schema` writes the committed one."""

import json
from pathlib import Path
from typing import Any

from srvmod.infra.settings.names import PRODUCT, SECRET_KEYS
from srvmod.infra.settings.settings import Settings

COMMITTED = Path("docs/schema/stack.schema.json")
"""Where the schema lies, from the repository's root; stack files name it in their first line."""

_PULUMI_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt")


def stack_schema() -> dict[str, Any]:
    """Schema of `Pulumi.<stack>.yaml`: types and bounds of every setting. Rules over several settings aren't in it."""
    schema = Settings.model_json_schema(by_alias=True)
    sections = {name: section for name, section in schema["properties"].items() if name != "stack"}
    secret = {
        "type": "object",
        "description": f"Set with: pulumi config set --secret {PRODUCT}:<name>",
        "properties": {"secure": {"type": "string"}},
        "required": ["secure"],
        "additionalProperties": False,
    }
    config = {
        "type": "object",
        "properties": {
            **{f"{PRODUCT}:{name}": section for name, section in sections.items()},
            **{f"{PRODUCT}:{name}": secret for name in sorted(SECRET_KEYS)},
        },
        "required": [f"{PRODUCT}:{name}" for name in schema["required"] if name != "stack"],
        # Other namespaces are other providers' business.
        "patternProperties": {f"^(?!{PRODUCT}:)[A-Za-z0-9-]+:": {}},
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Settings of a {PRODUCT} stack (Pulumi.<stack>.yaml)",
        "type": "object",
        "properties": {"config": config, **{key: {"type": "string"} for key in _PULUMI_KEYS}, "environment": {}},
        "required": ["config"],
        "additionalProperties": False,
        "$defs": schema["$defs"],
    }


def stack_schema_text() -> str:
    """The schema as it is committed: sorted, so that rendering it twice gives the same bytes."""
    return json.dumps(stack_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    COMMITTED.parent.mkdir(parents=True, exist_ok=True)
    COMMITTED.write_text(stack_schema_text(), encoding="utf-8")
