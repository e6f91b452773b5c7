"""Locks, signals, ports and records of the local stack, without starting one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from srvmod.local import commands, facts, namespace
from srvmod.local.errors import LocalError
from srvmod.local.interrupts import Interrupted, interruptible, undisturbed
from srvmod.local.locking import at_work, locked
from srvmod.local.paths import State
from srvmod.local.pulumi_cli import Pulumi, ResourceLines, end_engines, engines, stale_locks
from srvmod.local.stack import LocalStack


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path)
    made.make()
    return made


def quiet(*_: str) -> None:
    pass


# -- one command at a time ----------------------------------------------------------------------------------------


def test_a_second_command_is_told_who_works_here(state: State) -> None:
    with locked(state, "up"), pytest.raises(LocalError) as caught, locked(state, "down"):
        pass
    assert f"`srvmod local up` (process {os.getpid()}) works on {state.root}" in caught.value.what
    assert f"kill -INT {os.getpid()}" in caught.value.fix
    assert "`srvmod local down` again" in caught.value.fix
    with locked(state, "down"):
        assert state.lock_file.read_text() == f"down {os.getpid()}\n"


def test_the_lock_of_a_killed_command_is_free(state: State) -> None:
    script = (
        "import sys, time; from pathlib import Path; from srvmod.local.locking import locked; "
        "from srvmod.local.paths import State\n"
        "with locked(State(Path(sys.argv[1])), 'up'):\n print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, state.root], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LocalError, match=f"process {holder.pid}"), locked(state, "up"):
            pass
        assert at_work(state) == ("up", holder.pid)
        holder.kill()
        holder.wait()
    assert at_work(state) is None, "a killed command leaves its name in the file, but works no more"
    with locked(state, "up"):
        pass


def test_an_engine_that_isnt_packed_is_refused(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVMOD_ENGINE", "vllm")
    with pytest.raises(LocalError, match="SRVMOD_ENGINE=vllm: the local stack has no image of it; allowed: simulated"):
        LocalStack(state, quiet).up()


def test_a_users_proxy_and_profile_are_left_out(monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    monkeypatch.setenv("NO_PROXY", "corp.example")
    monkeypatch.setenv("AWS_PROFILE", "production")
    variables = facts.aws_environment("http://127.0.0.1:5000")
    assert variables["NO_PROXY"] == variables["no_proxy"] == "corp.example,127.0.0.1"
    runner = Pulumi(Path("pulumi"), variables, state.logs / "pulumi.log")
    assert "AWS_PROFILE" not in runner.env


def test_a_state_folder_that_cant_be_made_is_named() -> None:
    with pytest.raises(LocalError) as caught:
        LocalStack(State(Path("/proc/nope")), quiet).up()
    assert caught.value.what == "the state folder /proc/nope can't be made: No such file or directory"
    assert "SRVMOD_STATE" in caught.value.fix


# -- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_each_signal_ends_a_command_with_one_line_and_its_code(
    number: signal.Signals, code: int, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = commands.Steps()
    before = signal.getsignal(number)
    steps("pulumi up", "creating")
    with pytest.raises(typer.Exit) as caught, commands._told(state, steps, lambda: "nothing runs"):
        signal.raise_signal(number)
    assert caught.value.exit_code == code
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"interrupted ({number.name}) in step 'pulumi up': nothing runs"
    assert signal.getsignal(number) is before


def test_work_that_must_not_be_cut_is_finished_first() -> None:
    done = []

    def work() -> None:
        with interruptible(), undisturbed():
            signal.raise_signal(signal.SIGINT)
            done.append("finished")

    with pytest.raises(Interrupted):
        work()
    assert done == ["finished"]


def test_any_error_becomes_a_message_and_exit_code_1(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, commands._told(state, commands.Steps(), lambda: ""):
        raise ZeroDivisionError("division by zero")
    assert caught.value.exit_code == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in shown
    assert "Traceback" not in shown


# -- ports --------------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(state: State) -> Iterator[list[socket.socket]]:
    kept: list[socket.socket] = []
    yield kept
    for listener in kept:
        listener.close()


def ports_of(state: State) -> tuple[dict[str, int], dict[str, int]]:
    """(ports, ports that others have) of a start whose sockets are closed again."""
    listeners, taken = namespace.open_listeners(state.ports_file)
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
    for listener in listeners.values():
        listener.close()
    return ports, taken


def test_the_next_start_has_the_same_ports(state: State) -> None:
    first, taken = ports_of(state)
    assert len(set(first.values())) == len(namespace.LISTENERS)
    assert not taken
    assert ports_of(state) == (first, {})


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port_alone_is_replaced_and_told(state: State, address: str, opened: list[socket.socket]) -> None:
    first, _ = ports_of(state)
    other = socket.socket()
    opened.append(other)
    other.bind((address, first["api"]))
    other.listen()
    second, taken = ports_of(state)
    assert taken == {"api": first["api"]}
    assert second["api"] != first["api"]
    assert {k: v for k, v in second.items() if k != "api"} == {k: v for k, v in first.items() if k != "api"}
    assert ports_of(state) == (second, {}), "the new port is kept from now on"


def test_a_broken_record_of_ports_is_written_anew(state: State) -> None:
    state.ports_file.write_text('{"api": ')
    ports, taken = ports_of(state)
    assert not taken
    assert json.loads(state.ports_file.read_text()) == ports


# -- what is shown ------------------------------------------------------------------------------------------------


def test_of_many_resources_the_first_of_each_provider_is_told() -> None:
    told: list[str] = []
    lines = ResourceLines(lambda _, what: told.append(what))
    for index in range(50):
        lines(f" +  aws:iam/role:Role role-{index} created (1s)")
    lines(" +  kubernetes:core/v1:Namespace serving created (0.1s)")
    lines("Diagnostics: 3 created by nobody")
    assert told == [
        "resource 1: aws:iam/role:Role role-0 created",
        "resource 51: kubernetes:core/v1:Namespace serving created",
    ]


def test_a_stack_in_the_making_shows_who_works_and_nothing_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    node = {"name": "ip-10-0-12-34.ec2.internal", "instanceType": "p5.48xlarge", "ready": True, "weightsReady": False}
    engine = {"name": "engine-7c9d8f6b5-x2x9k", "ready": False, "gpus": [0, 1, 2, 3], "podIp": None}
    result = {
        "running": True, "problem": "0 of 2 engines ready", "atWork": {"command": "up", "pid": 4711},
        "endpoint": "http://127.0.0.1:8080", "apiKeyFile": "/s/key", "kubeconfig": "/s/kubeconfig",
        "engineKind": "simulated", "components": [], "nodes": [{**node, "pretended": True, "engines": [engine]}],
        "outputs": {"endpoint": {"host": "lb"}, "arns": {"queue": "arn:aws:sqs:us-east-1:123456789012:" + 150 * "q"}},
    }  # fmt: skip
    commands._show(result)
    shown = capsys.readouterr().out
    assert "ip-10-0-12-34.ec2.internal (pretended)" in shown, "names are whole where no terminal is narrow"
    assert "engine-7c9d8f6b5-x2x9k" in shown
    assert "0 of 2 engines ready" in shown
    assert "`srvmod local up` (process 4711)" in shown
    assert f"  arns.queue     arn:aws:sqs:us-east-1:123456789012:{150 * 'q'}\n" in shown
    assert "curl" not in shown, "no engine would answer"
    engine["ready"] = True
    commands._show(result)
    assert "curl -N http://127.0.0.1:8080/v1/chat/completions" in capsys.readouterr().out


# -- records ------------------------------------------------------------------------------------------------------


def record(state: State, pid: int, started: str) -> facts.Facts:
    found = facts.Facts("abc", 1, 2, 3, pid, started)
    found.save(state.facts_file)
    return found


def test_status_without_a_stack(state: State) -> None:
    status = LocalStack(state, quiet).status()
    assert status["problem"] == "no stack; `srvmod local up` starts one"
    assert status["atWork"] is None


def test_status_tells_of_a_first_up_that_is_at_work(state: State) -> None:
    with locked(state, "up"):
        status = LocalStack(state, quiet).status()
    assert status["problem"] == "no stack yet"
    assert status["atWork"] == {"command": "up", "pid": os.getpid()}


def test_a_record_whose_pid_is_somebody_elses_now_is_no_stack(state: State) -> None:
    record(state, os.getpid(), "1")
    status = LocalStack(state, quiet).status()
    assert status["running"] is False
    assert "namespaces are gone" in status["problem"]


def test_a_silent_supervisor_is_named(state: State) -> None:
    record(state, os.getpid(), facts.process_start(os.getpid()))
    status = LocalStack(state, quiet).status()
    (supervisor,) = (c for c in status["components"] if c["name"] == "supervisor")
    assert not supervisor["healthy"]
    assert str(state.socket) in supervisor["problem"]
    assert "local down" in supervisor["problem"]


def test_a_record_cut_off_in_the_middle_says_what_clears_it(state: State) -> None:
    state.facts_file.write_text('{"stack_id": "a"')
    with pytest.raises(LocalError) as caught:
        LocalStack(state, quiet).status()
    assert "local down" in caught.value.fix


def test_a_supervisor_that_ended_at_once_is_told_with_its_last_words(state: State) -> None:
    found = record(state, os.getpid(), "1")
    (state.logs / "supervisor.log").write_text("`mount -t tmpfs`: permission denied\n")
    with pytest.raises(LocalError, match="permission denied"):
        namespace.await_answer(state, found)
    assert not state.facts_file.exists(), "what ended at once is no stack that was killed"


def test_processes_without_a_record_are_found_and_ended(state: State) -> None:
    script = "import time; print('up', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, namespace.SUPERVISOR, "--state", str(state.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stray:
        assert stray.stdout
        assert stray.stdout.readline() == "up\n"
        assert namespace.holders(state) == [stray.pid]
        assert str(stray.pid) in LocalStack(state, quiet).status()["problem"]
        assert not namespace.holders(State(state.root / "other"))
        assert namespace.end(state)
        assert stray.wait(5) == -signal.SIGKILL


def test_locks_of_engines_that_are_gone_are_stale_and_others_are_not(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "locks" / "organization" / "srvmod" / "local"
    folder.mkdir(parents=True)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    here = os.uname().nodename
    for name, holder in {
        "gone": {"pid": gone.pid, "hostname": here},
        "running": {"pid": os.getpid(), "hostname": here},
        "elsewhere": {"pid": gone.pid, "hostname": f"not-{here}"},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(holder))
    (folder / "broken.json").write_text("{")
    assert [file.stem for file in stale_locks(tmp_path)] == ["gone"]
    assert engines(tmp_path) == [os.getpid()]


def test_an_engine_that_works_on_the_stack_is_ended_with_it(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "locks"
    folder.mkdir(parents=True)
    script = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout
        assert engine.stdout.readline() == "up\n"
        lock = {"pid": engine.pid, "hostname": os.uname().nodename}
        (folder / "lock.json").write_text(json.dumps(lock))
        end_engines(tmp_path, 0.3)
        assert engine.wait(5) == -signal.SIGKILL


def test_the_last_logs_stay_until_there_are_newer_ones(state: State) -> None:
    stack = LocalStack(state, quiet)
    (state.logs / "etcd.log").write_text("first")
    stack.down()
    assert not state.live.exists()
    assert (state.last_logs / "etcd.log").read_text() == "first"
    assert not stack.down(), "there was nothing to end"
    assert (state.last_logs / "etcd.log").read_text() == "first"
