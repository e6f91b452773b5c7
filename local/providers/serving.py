"""A plugin's gRPC server: its port on stdout, and an end when the engine that started it is gone."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from concurrent import futures
from typing import Any

import grpc

_WORKERS = 32
_MESSAGE = 400 << 20
_LOOK_AFTER_PARENT_S = 1.0


def serve(add: str, servicer: Any, module: Any = None) -> None:
    """Serve until SIGTERM, SIGINT, or until the parent process is gone. ``add`` is the generated function's name."""
    if module is None:
        from pulumi.runtime.proto import provider_pb2_grpc as module
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(name)s: %(message)s")
    server = grpc.server(
        futures.ThreadPoolExecutor(_WORKERS),
        options=[("grpc.max_receive_message_length", _MESSAGE), ("grpc.max_send_message_length", _MESSAGE)],
    )
    getattr(module, add)(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    parent = os.getppid()
    while not over.is_set() and os.getppid() == parent:
        over.wait(_LOOK_AFTER_PARENT_S)
    end = getattr(servicer, "end", None)
    if end is not None:
        end()
    server.stop(0.2)
    time.sleep(0.05)
    os._exit(0)
