"""The load of the speed bench: many streams read by one process, as cheaply as Python can.

Run as a program with one JSON object on stdin (see Load) it prints one JSON object (see Figures). When a token came
is told by the kernel, which stamps each packet as it takes it in; so a reader that is late spoils no figure.
"""

from __future__ import annotations

import json
import os
import random
import resource
import select
import socket
import struct
import sys
import time
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from srvmod.capacity.scores import quantile

_TIMESTAMP_NS: Final = getattr(socket, "SO_TIMESTAMPNS", 35)
_ANCILLARY: Final = socket.CMSG_SPACE(16)
_EVENT_END: Final = b"\n\n"
_DONE: Final = b"data: [DONE]\n\n"
_ANSWER_END: Final = b"0\r\n\r\n"
_WORDS: Final = ["north", "river", "stone", "light", "paper", "cloud", "table", "green", "seven", "train"]


@dataclass(frozen=True)
class Load:
    """What to ask for. `step_seconds` is the engine's constant time per token."""

    host: str
    port: int
    streams: int
    warm_seconds: float
    measured_seconds: float
    step_seconds: float
    output_tokens: tuple[int, int]
    prompt_words: int
    engine_pid: int
    seed: int = 1


@dataclass
class Figures:
    """What came. Gaps and phases are seconds, as counts per 10 microseconds and as raw numbers for this process."""

    tokens: int = 0
    requests: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    engine_cpu_seconds: float = 0.0
    other_cpu_seconds: float = 0.0
    """What all other processes of the machine used meanwhile, over all its CPUs."""
    gap_errors: array[float] = field(default_factory=lambda: array("d"))
    arrivals: array[float] = field(default_factory=lambda: array("d"))
    first_tokens: array[float] = field(default_factory=lambda: array("d"))


class _Stream:
    """One session: asks, reads its answer, and asks again."""

    __slots__ = ("asked", "in_answer", "last", "rest", "socket")

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.asked = 0.0
        self.last = 0.0
        self.in_answer = False
        self.rest = b""


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> float:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _TIMESTAMP_NS:
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return seconds + nanoseconds * 1e-9
    return time.time()


class Client:
    """All streams, in one epoll loop."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._random = random.Random(load.seed)
        self._epoll = select.epoll()
        self._streams: dict[int, _Stream] = {}
        self.figures = Figures()

    def run(self) -> Figures:
        """Connect, warm up, measure. Raises OSError when the engine can't be reached."""
        load = self._load
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(load.streams):
            made = socket.create_connection((load.host, load.port), timeout=30)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, _TIMESTAMP_NS, 1)
            made.setblocking(False)
            stream = _Stream(made)
            self._streams[made.fileno()] = stream
            self._epoll.register(made.fileno(), select.EPOLLIN)
            self._ask(stream)
        began = time.time()
        start, end = began + load.warm_seconds, began + load.warm_seconds + load.measured_seconds
        used = (0.0, 0.0, 0.0)
        measuring = False
        while (now := time.time()) < end and self._streams:
            if not measuring and now >= start:
                measuring = True
                used = _used(load.engine_pid)
            for fd, _ in self._epoll.poll(0.05):
                self._read(fd, measuring)
        own, engine, everything = (later - before for later, before in zip(_used(load.engine_pid), used, strict=True))
        figures = self.figures
        figures.cpu_seconds, figures.engine_cpu_seconds = own, engine
        figures.other_cpu_seconds = max(0.0, everything - own - engine)
        figures.seconds = time.time() - start
        for stream in self._streams.values():
            stream.socket.close()
        return self.figures

    def _ask(self, stream: _Stream) -> None:
        load, pick = self._load, self._random
        body = json.dumps(
            {
                "messages": [{"role": "user", "content": " ".join(pick.choices(_WORDS, k=load.prompt_words))}],
                "max_tokens": pick.randint(*load.output_tokens),
                "ignore_eos": True,
                "stream": True,
            }
        ).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        stream.in_answer = False
        stream.last = 0.0
        stream.asked = time.time()
        stream.socket.send(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))

    def _read(self, fd: int, measuring: bool) -> None:
        stream = self._streams[fd]
        try:
            data, ancillary, _, _ = stream.socket.recvmsg(1 << 14, _ANCILLARY)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(fd, str(error))
            return
        if not data:
            self._fail(fd, "the connection was closed")
            return
        at = _stamp(ancillary)
        whole = stream.rest + data if stream.rest else data
        if not stream.in_answer:
            if not whole.startswith(b"HTTP/1.1 200"):
                self._fail(fd, whole[:200].decode("latin-1"))
                return
            stream.in_answer = True
            whole = whole.partition(b"\r\n\r\n")[2]
        cut = whole.rfind(_EVENT_END)
        events = whole.count(_EVENT_END)
        # What follows the last whole event belongs to the next read (chunk lengths don't matter here).
        stream.rest = whole[cut + 2 :] if cut >= 0 else whole
        ended = whole.endswith(_ANSWER_END)
        if ended:
            events -= 1  # [DONE]
        if b'"role":' in whole:
            events -= 1
        if events > 0:
            self._count(stream, at, events, measuring)
        if ended:
            stream.rest = b""
            self.figures.requests += measuring
            self._ask(stream)

    def _count(self, stream: _Stream, at: float, events: int, measuring: bool) -> None:
        """Tokens that came together count as they came: the later ones without any gap."""
        figures = self.figures
        if measuring:
            figures.tokens += events
            figures.arrivals.append(at)
            if stream.last:
                figures.gap_errors.append(abs(at - stream.last - self._load.step_seconds))
            else:
                figures.first_tokens.append(at - stream.asked)
            for _ in range(events - 1):
                figures.gap_errors.append(self._load.step_seconds)
        stream.last = at

    def _fail(self, fd: int, why: str) -> None:
        self.figures.failures.append(why)
        self._epoll.unregister(fd)
        self._streams.pop(fd).socket.close()


def _used(engine: int) -> tuple[float, float, float]:
    """CPU seconds of this process, of the engine, and of the whole machine so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    tick = os.sysconf("SC_CLK_TCK")
    # After the name in brackets, which may hold anything: user and system time are the 12th and 13th field.
    fields = Path(f"/proc/{engine}/stat").read_text().rpartition(")")[2].split()
    engine_ticks = int(fields[11]) + int(fields[12])
    line = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _wait, irq, soft = (int(word) for word in line[1:8])
    return own.ru_utime + own.ru_stime, engine_ticks / tick, (user + nice + system + irq + soft) / tick


def spread(arrivals: array[float], step: float) -> list[float]:
    """How long after the first token of its step each token came, seconds, ordered.

    Steps are a constant time apart, so arrivals modulo that time form one cluster; it begins after the longest
    stretch of the period in which nothing arrives.
    """
    phases = sorted(at % step for at in arrivals)
    if len(phases) < 2:
        return [0.0] * len(phases)
    gaps = [(phases[0] + step - phases[-1], 0)]
    gaps += [(later - earlier, index + 1) for index, (earlier, later) in enumerate(pairwise(phases))]
    first = phases[max(gaps)[1]]
    return sorted((phase - first) % step for phase in phases)


def main() -> None:
    """Read a Load from stdin, run it, print what came as JSON."""
    given = json.load(sys.stdin)
    load = Load(**{**given, "output_tokens": tuple(given["output_tokens"])})
    figures = Client(load).run()
    errors = sorted(figures.gap_errors)
    late = spread(figures.arrivals, load.step_seconds)
    firsts = sorted(figures.first_tokens)
    shown = {
        "tokens": figures.tokens,
        "requests": figures.requests,
        "failures": figures.failures,
        "seconds": figures.seconds,
        "cpu_seconds": figures.cpu_seconds,
        "engine_cpu_seconds": figures.engine_cpu_seconds,
        "other_cpu_seconds": figures.other_cpu_seconds,
        **{f"gap_error_p{share}": quantile(errors, share / 100) for share in (50, 95, 99)},
        **{f"spread_p{share}": quantile(late, share / 100) for share in (50, 95)},
        **{f"first_token_p{share}": quantile(firsts, share / 100) for share in (50, 95)},
    }
    json.dump(shown, sys.stdout)


if __name__ == "__main__":
    main()
