"""``python -m srvmod.local.aws``: serve the simulated AWS until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import base64
import json
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from srvmod.local.aws.world import DEFAULT_ACCOUNT


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m srvmod.local.aws", description="Simulated AWS: moto and more.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one")
    parser.add_argument("--fd", type=int, help="a listening socket that was inherited, instead of host and port")
    parser.add_argument("--state", type=Path, help="journal of changes, replayed at start; without it nothing is kept")
    parser.add_argument("--ready-file", type=Path, help="JSON with the url, written when requests are answered")
    parser.add_argument("--cluster-endpoint", help="API server URL that simulated EKS clusters have")
    parser.add_argument("--cluster-ca", type=Path, help="PEM file of that API server's certificate authority")
    parser.add_argument("--account", default=DEFAULT_ACCOUNT, help="account id")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve. Returns 2 when the arguments or the journal can't be used."""
    args = _arguments(argv)
    logging.basicConfig(format="%(asctime)s aws %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    if (args.cluster_endpoint is None) != (args.cluster_ca is None):
        print("--cluster-endpoint and --cluster-ca belong together", file=sys.stderr)
        return 2
    os.environ["MOTO_S3_DEFAULT_KEY_BUFFER_SIZE"] = str(1 << 30)  # objects stay in memory, not in /tmp
    from srvmod.local.aws.serve import ServeError, serve

    try:
        ca = base64.b64encode(args.cluster_ca.read_bytes()).decode() if args.cluster_ca else ""
        server = serve(
            host=args.host, port=args.port, descriptor=args.fd, state=args.state, account=args.account,
            endpoint=(args.cluster_endpoint, ca) if args.cluster_endpoint else None,
            access_key=os.environ.get("SRVMOD_AWS_ACCESS_KEY_ID"),
        )  # fmt: skip
    except (ServeError, OSError) as error:
        print(f"simulated AWS: {error}", file=sys.stderr)
        return 2

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    logging.getLogger("srvmod.local.aws").info("SIMULATED AWS (not AWS) at %s", server.url)
    if args.ready_file:
        temporary = args.ready_file.with_name(f".{args.ready_file.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"url": server.url, "pid": os.getpid(), **server.front.health()}))
        temporary.replace(args.ready_file)
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
