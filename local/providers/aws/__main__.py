"""``pulumi-resource-aws``: serve the provider, print the port, end with the engine."""

from __future__ import annotations

from srvmod.local.providers.protos import light

light()

from srvmod.local.providers.aws.servicer import AwsProvider  # noqa: E402
from srvmod.local.providers.serving import serve  # noqa: E402

if __name__ == "__main__":
    serve("add_ResourceProviderServicer_to_server", AwsProvider())
