"""JSON schema of the stack's outputs, for the teams that read them. `python -m srvmod.infra.outputs.schema` writes
the committed one."""

import json
from pathlib import Path
from typing import Any

from srvmod.infra.outputs.contract import CONTRACT_VERSION, Arns, Outputs

COMMITTED = Path("docs/schema/outputs.schema.json")


def outputs_schema() -> dict[str, Any]:
    """Schema of what `pulumi stack output --json` prints, `arns` among it."""
    schema = Outputs.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = f"Outputs of a srvmod stack, contract version {CONTRACT_VERSION}"
    schema["$defs"]["Arns"] = Arns.model_json_schema(mode="serialization")
    schema["properties"]["arns"] = {"$ref": "#/$defs/Arns"}
    schema["required"] = sorted({*schema["required"], "arns"})
    return schema


def outputs_schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(outputs_schema(), indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Write the committed schema, from the project's folder."""
    COMMITTED.write_text(outputs_schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
