"""``pulumi-language-python [flags] [ENGINE]``: serve the language host, print the port."""

from __future__ import annotations

import sys

from srvmod.local.providers.protos import light

light()

from pulumi.runtime.proto import language_pb2_grpc  # noqa: E402

from srvmod.local.providers.langhost.host import LanguageHost  # noqa: E402
from srvmod.local.providers.serving import serve  # noqa: E402

if __name__ == "__main__":
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    root = next((f.split("=", 1)[1] for f in flags if f.startswith(("-root=", "--root="))), "")
    serve("add_LanguageRuntimeServicer_to_server", LanguageHost(words[0] if words else "", root), language_pb2_grpc)
