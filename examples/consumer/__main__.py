"""Reads the service's stack by reference and exports what this team's applications are configured with."""

from typing import Any

import pulumi

CONTRACT_VERSION = 1
"""The contract that this program was written for; docs/outputs.md lists its fields."""


def of_known_version(version: Any) -> int:
    """The version, when it is the one this program reads. Raises ValueError before anything is configured wrongly."""
    if version != CONTRACT_VERSION:
        raise ValueError(
            f"contractVersion = {version:g}; allowed: {CONTRACT_VERSION}; fix: read in the service's docs/outputs.md "
            "what changed, adapt this program, then CONTRACT_VERSION"
        )
    return CONTRACT_VERSION


def client_settings(outputs: dict[str, Any]) -> dict[str, Any]:
    """What an application needs to call the service. The API key isn't among it: it is read where it is kept."""
    endpoint, auth = outputs["endpoint"], outputs["auth"]
    # A null output is absent in a StackReference: any name that leads to the gateway will do then.
    host = endpoint.get("hostname", "GATEWAY")
    return {
        "baseUrl": f"{endpoint['scheme']}://{host}:{endpoint['port']:g}{endpoint['path']}",
        "model": outputs["model"]["servedName"],
        "keyHeader": auth["header"],
        "keyIn": auth["keysIn"],
        "maxTokens": outputs["limits"]["maxModelTokens"],
        "timeoutSeconds": outputs["limits"]["maxStreamSeconds"],
        "ttftMs": outputs["slo"]["ttftMs"],
        "itlP95Ms": outputs["slo"]["itlP95Ms"],
        "simulated": outputs["engineKind"] == "simulated",
    }


service = pulumi.StackReference(pulumi.Config().require("service"))
groups = ("endpoint", "auth", "model", "limits", "slo", "engineKind")
read = pulumi.Output.all(**{name: service.require_output(name) for name in groups})
version = service.require_output("contractVersion").apply(of_known_version)
pulumi.export("contractVersion", version)
pulumi.export("client", pulumi.Output.all(version, read).apply(lambda both: client_settings(both[1])))
