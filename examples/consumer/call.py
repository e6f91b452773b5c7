"""One streamed chat completion, from the settings that the program exported. Standard library only.

pulumi stack output client --json | INFERENCE_API_KEY=... python call.py "What is a bond?"
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any


def tokens(client: dict[str, Any], key: str, prompt: str, most: int, address: str | None) -> Iterator[str]:
    """Pieces of the answer as they arrive. `address` replaces scheme, host and port, e.g. of a port-forward."""
    base = client["baseUrl"] if address is None else address.rstrip("/") + "/" + client["baseUrl"].split("/", 3)[3]
    body = {
        "model": client["model"],
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": min(most, client["maxTokens"]),
        "stream": True,
    }
    request = urllib.request.Request(
        f"{base}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", client["keyHeader"]: f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=client["timeoutSeconds"]) as answer:
        for line in answer:
            event = line.decode().strip().removeprefix("data: ")
            if event and event != "[DONE]":
                for choice in json.loads(event)["choices"]:
                    if piece := choice["delta"].get("content"):
                        yield piece


def main() -> int:
    """Print the answer as it comes, then the time to its first token. Exit code 1 when the service refuses."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("prompt")
    arguments.add_argument("--max-tokens", type=int, default=64)
    arguments.add_argument("--address", help="another way to the gateway, such as http://127.0.0.1:8080")
    given = arguments.parse_args()
    key = os.environ.get("INFERENCE_API_KEY")
    client = json.load(sys.stdin)
    if not key:
        print(f"INFERENCE_API_KEY isn't set; read your key from the secret {client['keyIn']}", file=sys.stderr)
        return 1
    start, first = time.monotonic(), None
    try:
        for piece in tokens(client, key, given.prompt, given.max_tokens, given.address):
            first = first or time.monotonic() - start
            print(piece, end="", flush=True)
    except urllib.error.HTTPError as error:
        print(f"{error.code} {error.reason}: {error.read()[:200].decode(errors='replace')}", file=sys.stderr)
        return 1
    except urllib.error.URLError as error:
        print(f"no answer from {given.address or client['baseUrl']}: {error.reason}", file=sys.stderr)
        return 1
    if first is None:
        print("the service answered without a token", file=sys.stderr)
        return 1
    said = " (simulated engine)" if client["simulated"] else ""
    print(f"\n{first * 1e3:.0f} ms to the first token, promised: {client['ttftMs']:g} ms{said}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
