"""What the agent is doing, over HTTP: /healthz, /readyz and /metrics."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from weight_cache.progress import Progress

LONGEST_SILENCE: Final = 300.0
"""Seconds without a sign of life after which /healthz fails; S3 time-outs and retry pauses stay well below."""

PHASES: Final = ("starting", "verifying", "downloading", "opening", "ready", "waiting")


@dataclass
class Status:
    """Shared between the agent's thread (writes) and the server (reads)."""

    revision: str
    progress: Progress
    phase: str = "starting"
    ready: bool = False
    opens_node: bool = True
    """False when nodes are left alone (--no-taint)."""
    taint_lifted: bool = False
    error: str = ""
    attempts: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    seconds_to_ready: float = 0.0

    def metrics(self) -> str:
        """Prometheus text."""
        label = f'revision="{self.revision}"'
        lines = [
            "# HELP weight_cache_ready 1 when the revision is verified and in place.",
            "# TYPE weight_cache_ready gauge",
            f"weight_cache_ready{{{label}}} {int(self.ready)}",
            "# HELP weight_cache_taint_lifted 1 when this node's startup taint is gone.",
            "# TYPE weight_cache_taint_lifted gauge",
            f"weight_cache_taint_lifted {int(self.taint_lifted)}",
            "# HELP weight_cache_bytes Size of the revision, bytes.",
            "# TYPE weight_cache_bytes gauge",
            f"weight_cache_bytes{{{label}}} {self.progress.total}",
            "# HELP weight_cache_bytes_present Bytes of it on disk, bytes.",
            "# TYPE weight_cache_bytes_present gauge",
            f"weight_cache_bytes_present{{{label}}} {self.progress.done}",
            "# HELP weight_cache_seconds_to_ready From the agent's start to a verified revision, seconds.",
            "# TYPE weight_cache_seconds_to_ready gauge",
            f"weight_cache_seconds_to_ready{{{label}}} {self.seconds_to_ready:.3f}",
            "# HELP weight_cache_attempts_total Attempts to get the revision in place.",
            "# TYPE weight_cache_attempts_total counter",
            f"weight_cache_attempts_total {self.attempts}",
            "# HELP weight_cache_failures_total Failed attempts by reason.",
            "# TYPE weight_cache_failures_total counter",
            *(
                f'weight_cache_failures_total{{reason="{reason}"}} {count}'
                for reason, count in sorted(self.failures.items())
            ),
            "# HELP weight_cache_phase 1 for what the agent is doing now.",
            "# TYPE weight_cache_phase gauge",
            *(f'weight_cache_phase{{phase="{phase}"}} {int(phase == self.phase)}' for phase in PHASES),
        ]
        return "\n".join(lines) + "\n"


def serve(status: Status, host: str, port: int) -> ThreadingHTTPServer:
    """Start answering in a thread. Raises OSError when the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the method's name is http.server's
            if self.path == "/healthz":
                silence = status.progress.silence
                text = f"{status.phase}, last sign of life {silence:.0f} s ago\n"
                self._answer(200 if silence < LONGEST_SILENCE else 503, text)
            elif self.path == "/readyz":
                fine = status.ready and (status.taint_lifted or not status.opens_node)
                self._answer(200 if fine else 503, f"{status.phase}{': ' + status.error if status.error else ''}\n")
            elif self.path == "/metrics":
                self._answer(200, status.metrics())
            else:
                self._answer(404, "known: /healthz /readyz /metrics\n")

        def _answer(self, code: int, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # probes every few seconds are no news
            return

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="status", daemon=True).start()
    return server
