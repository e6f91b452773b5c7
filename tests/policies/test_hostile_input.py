"""Input that nobody should write: it is read or refused with a place, quickly, and never crashes the check."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from srvmod.policies.check import judged
from srvmod.policies.config import Config
from srvmod.policies.facts import Unread, World
from srvmod.policies.readers import sources, yamltext
from srvmod.policies.readers.nginx import passed
from srvmod.policies.readers.shell import Shell
from srvmod.policies.readers.world import Collector, of_text, take_text
from srvmod.policies.report import FORMATS, render
from tests.policies.table import HERE

BASE = (HERE / "base.yaml").read_text()
MARKS = [
    "{{ x }}",
    "&a",
    "*a",
    "<<: *a",
    "\t",
    "- ",
    ": ",
    "---\n",
    "'",
    '"',
    "|",
    "$(",
    "${A",
    "`",
    "\\",
    "{",
    "]",
    "\x00",
    "é",
    "!!python/object:os.system ",
]


def world_of(data: bytes) -> World:
    text = sources.decode("x.yaml", data)
    collector = Collector(files=1)
    if isinstance(text, Unread):
        collector.unread.append(text)
    else:
        take_text(collector, text)
    return collector.world()


@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=400))
@example(data=b"\xff\xfea\x00")
@example(data=b"{" * 5000)
@example(data=b"[" * 100_000)
@example(data=b"a: &a [*a]")
@example(data=b"apiVersion: v1\nkind: Pod\nspec: {containers: 3, tolerations: {}, volumes: x}\n")
@example(data=b'{"apiVersion": "v1", "kind": "List", "items": [[[]], null, 1, "x"]}')
def test_bytes_never_crash(data: bytes) -> None:
    result = judged(world_of(data), Config())
    for name in FORMATS:
        assert isinstance(render(result, name), str)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_damaged_manifest_never_crashes(data: st.DataObject) -> None:
    text = BASE
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        if data.draw(st.booleans()):
            text = text[:at] + data.draw(st.sampled_from(MARKS)) + text[at:]
        else:
            text = text[:at] + text[at + data.draw(st.integers(1, 40)) :]
    result = judged(world_of(text.encode()), Config())
    assert result.exit_code in {0, 1, 2}
    for name in FORMATS:
        render(result, name)


@settings(max_examples=80, deadline=None)
@given(script=st.text(alphabet="ab $(){}[]'\"\\`;&|<>#=\n-:+@*?!0", max_size=120))
@example(script="A=${A:-${A:-${A}}}; ${A}" * 30)
@example(script="cat <<EOF\nx")
def test_scripts_never_crash(script: str) -> None:
    from srvmod.policies.facts import Place

    shell = Shell({}, [], lambda line: Place("x", line + 1))
    for command in shell.run(script + "\nvllm serve m"):
        assert all(word.place.line for word in command.words)


@settings(max_examples=80, deadline=None)
@given(text=st.text(alphabet="ab ${}'\"\\;#\n:/", max_size=120))
@example(text="a {" * 5000)
def test_configurations_of_nginx_never_crash(text: str) -> None:
    for one in passed(text + "'\"\n}; proxy_pass http://engine;"):
        assert one.directive.line <= text.count("\n") + 1


@pytest.mark.parametrize("piece", ["${", "'\\", "a {", "}", "set $a $a;", "location / { proxy_pass http://a; }", " \n"])
def test_configurations_of_nginx_cost_what_their_length_costs(piece: str) -> None:
    start = time.process_time()
    passed(piece * (60_000 // len(piece)))
    assert time.process_time() - start < 2


@pytest.mark.parametrize("kind", ["spec", "containers", "env", "args", "resources"])
@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [None], [[1]], {"a": None}, True])
def test_fields_of_a_wrong_type_never_crash(kind: str, value: object) -> None:
    container: dict[str, object] = {"name": "e", "image": "vllm/vllm-openai", "args": ["--model", "m"]}
    spec: dict[str, object] = {"containers": [container]}
    pod: dict[str, object] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    if kind == "spec":
        pod["spec"] = value
    elif kind == "containers":
        spec["containers"] = value
    else:
        container[kind] = value
    judged(of_text(json.dumps(pod)), Config())


def test_bombs_cost_what_their_text_costs() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 40)]
    merges = ["m0: &m0 {a: 1}"] + [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 5)}]}}" for i in range(1, 40)]
    for body in (lines, merges):
        text = "apiVersion: acme.io/v1\nkind: Thing\n" + "\n".join(body)
        start = time.process_time()
        judged(of_text(text), Config())
        assert time.process_time() - start < 2
    doubling = "".join(f"        - {{name: V{i}, value: '$(V{i - 1})$(V{i - 1})'}}\n" for i in range(1, 60))
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n    - name: e\n"
        "      image: vllm/vllm-openai\n      args: [--model, m, -tp, $(V59)]\n      env:\n"
        "        - {name: V0, value: xxxxxxxxxx}\n" + doubling
    )
    start = time.process_time()
    judged(of_text(text), Config())
    assert time.process_time() - start < 2


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "MOST_VALUES", 1_000)
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  x: [" + "1," * 1_100 + "]\n"
    world = of_text(text)
    assert world.unread
    assert "more than 1,000 values" in world.unread[0].why


def test_several_places_are_named() -> None:
    world = of_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\nspec: {}\n---\nx: [\n")
    assert [one.place.line for one in world.unread] == [5, 8]
