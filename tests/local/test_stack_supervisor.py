"""What the supervisor says of its components, and how it starts them again."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from srvmod.local.components import Component
from srvmod.local.health import FinalProblem, aws_health, http_health
from srvmod.local.supervisor import STUCK_SECONDS, Process, Supervisor, readable

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


def healthy() -> str:
    return ""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(argv: tuple[str, ...] = SLEEP, health: Callable[[], str] = healthy) -> Process:
        made.append(Process(Component("part", argv, health), tmp_path / "logs" / "part.log"))
        return made[-1]

    yield make
    for one in made:
        if one.popen:
            one.popen.kill()
            one.popen.wait()


def ended(process: Process) -> None:
    assert process.popen
    process.popen.wait(10)
    process.check()


def test_a_killed_process_is_named_with_its_signal(process: Callable[..., Process]) -> None:
    part = process()
    part.start()
    part.check()
    assert part.report()["healthy"]
    assert part.popen
    os.kill(part.popen.pid, signal.SIGKILL)
    ended(part)
    report = part.report()
    assert report["problem"] == f"killed by SIGKILL; see {part.log}"
    assert report["final"]
    assert report["pid"] is None


def test_a_process_that_ends_is_told_with_its_last_words(process: Callable[..., Process]) -> None:
    part = process((sys.executable, "-c", "import sys; print('one'); sys.exit('no space left on device')"))
    part.start()
    ended(part)
    assert part.report()["problem"] == f"exited with 1: no space left on device; see {part.log}"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('{"level":"fatal","msg":"discovery failed","error":"no space left on device"}',
         "discovery failed: no space left on device"),
        ('{"level":"info"}', '{"level":"info"}'),
        ("[1, 2]", "[1, 2]"),
        ("plain words", "plain words"),
    ],
)  # fmt: skip
def test_log_lines_in_json_are_shown_as_words(line: str, shown: str) -> None:
    assert readable(line) == shown


def test_a_program_that_is_not_there_is_a_problem_and_not_the_supervisors_end(process: Callable[..., Process]) -> None:
    part = process(("/not/there",))
    part.start()
    report = part.report()
    assert "can't be started" in report["problem"]
    assert "/not/there" in report["problem"]
    assert report["final"]


def test_a_log_that_cannot_be_opened_is_a_problem_and_not_the_supervisors_end(
    process: Callable[..., Process], tmp_path: Path
) -> None:
    (tmp_path / "logs").write_text("a file in the folder's place")
    part = process()
    part.start()
    assert "can't be started" in part.report()["problem"]


def test_a_health_check_that_fails_is_its_components_trouble(process: Callable[..., Process]) -> None:
    def broken() -> str:
        raise RuntimeError("odd")

    part = process(health=broken)
    part.start()
    part.check()
    assert part.report()["problem"] == "its health can't be asked: RuntimeError: odd"
    assert not part.report()["final"]


def test_an_answer_about_a_predecessor_is_dropped(process: Callable[..., Process]) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        asked.set()
        go_on.wait(10)
        return "old trouble"

    part = process(health=slow)
    part.start()
    question = threading.Thread(target=part.check)
    question.start()
    assert asked.wait(10)
    part.forget()
    go_on.set()
    question.join(10)
    assert part.report()["problem"] == "to be started again"


def test_what_stopped_answering_is_stuck_and_what_never_answered_is_not(
    process: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    says = ["no answer"]
    part = process(health=lambda: says[0])
    part.start()
    now = time.monotonic()

    def after(seconds: float) -> bool:
        monkeypatch.setattr(time, "monotonic", lambda: now + seconds)
        part.check()
        return bool(part.report()["stuck"])

    assert not after(1000), "it is still starting"
    says[0] = ""
    assert not after(1001)
    says[0] = "no answer"
    assert not after(1002)
    assert not after(1002 + STUCK_SECONDS)
    assert after(1003 + STUCK_SECONDS)
    says[0] = ""
    assert not after(1004 + STUCK_SECONDS), "it answers again"


def test_what_is_stuck_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Supervisor([Component("part", SLEEP, healthy)], tmp_path)
    (part,) = supervisor.processes.values()
    try:
        part.start()
        part.check()
        assert supervisor.restart_dead() == []
        monkeypatch.setattr(Process, "stuck", True)
        assert supervisor.restart_dead() == ["part"]
        assert part.popen is None, "it is ended, and `watch` starts it"
    finally:
        supervisor.stop_all()


def test_what_died_starts_again_after_what_it_needs(tmp_path: Path) -> None:
    first = Component("first", SLEEP, lambda: "" if time.monotonic() > ready_at[0] else "not yet")
    second = Component("second", SLEEP, healthy, after=("first",))
    ready_at = [0.0]
    supervisor = Supervisor([second, first], tmp_path)

    async def scenario() -> None:
        watching = asyncio.create_task(supervisor.watch())
        await until(lambda: all(not p.problem for p in supervisor.processes.values()))
        for one in supervisor.processes.values():
            assert one.popen
            one.popen.kill()
            one.popen.wait()
            one.check()
        ready_at[0] = time.monotonic() + 1.0
        assert sorted(supervisor.restart_dead()) == ["first", "second"]
        await until(lambda: supervisor.processes["first"].running)
        assert not supervisor.processes["second"].running
        await until(lambda: all(not p.problem for p in supervisor.processes.values()))
        assert supervisor.processes["second"].started_at >= supervisor.processes["first"].healthy_at
        supervisor.stopping.set()
        await watching

    async def until(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 15
        while not true():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)

    try:
        asyncio.run(scenario())
    finally:
        supervisor.stop_all()


# -- health by HTTP -----------------------------------------------------------------------------------------------


@pytest.fixture
def page() -> Iterator[tuple[str, dict[str, object]]]:
    """A server's URL and what it answers: status, body."""
    answer: dict[str, object] = {"status": 200, "body": b"ok"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(str(answer["status"])))
            self.end_headers()
            body = answer["body"]
            assert isinstance(body, bytes)
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    server.server_close()


def test_health_says_what_came_back(page: tuple[str, dict[str, object]]) -> None:
    url, answer = page
    assert http_health(url)() == ""
    answer.update(status=503, body=b"slot 0:\nno containerd")
    assert http_health(url)() == f"GET {url}: status 503: slot 0: no containerd"
    assert "refused" in http_health("http://127.0.0.1:1/")()


def test_a_lost_account_is_final_and_says_what_to_do(page: tuple[str, dict[str, object]]) -> None:
    url, answer = page
    answer.update(body=json.dumps({"stateLost": None}).encode())
    assert aws_health(url)() == ""
    answer.update(body=json.dumps({"stateLost": "request 3 of the journal ended with 400"}).encode())
    with pytest.raises(FinalProblem) as caught:
        aws_health(url)()
    assert "request 3 of the journal" in str(caught.value)
    assert "`srvmod local down`" in str(caught.value)
