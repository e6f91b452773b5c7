"""Command lines: every spelling means the same, and options are taken as Python's argparse takes them."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from srvmod.policies.check import judged
from srvmod.policies.config import Config
from srvmod.policies.engine_versions import Option, table
from srvmod.policies.facts import Known, Place, Unknown
from srvmod.policies.readers.option_values import size
from srvmod.policies.readers.options import resolve
from srvmod.policies.readers.words import Word
from srvmod.policies.readers.world import of_text
from tests.policies.table import DUMPER, built

PLACE = Place("x", 1)
TABLE = table()
VALUES: dict[str, list[str]] = {
    "tensor_parallel_size": ["4", "8", "2"],
    "max_num_seqs": ["144", "1", "64"],
    "block_size": ["16", "32"],
    "kv_cache_dtype": ["fp8", "fp8_e5m2", "auto"],
    "stream_interval": ["1", "10"],
    "max_num_batched_tokens": ["2048", "2k", "100"],
    "quantization": ["fp8", "awq"],
    "shutdown_timeout": ["60", "0"],
    "gpu_memory_utilization": ["0.92", "0.2"],
}
SWITCHES = {"enable_chunked_prefill": [True, False], "enforce_eager": [True, False]}


def verdicts(container: dict[str, Any], more: Sequence[dict[str, Any]] = (), volumes: Sequence[Any] = ()) -> set[str]:
    """What the check says of the base with this container."""
    documents = built({"only": ["Deployment"]})
    spec = documents[0]["spec"]["template"]["spec"]
    base = spec["containers"][0]
    base.pop("command")
    base.pop("args")
    mounts = [*base["volumeMounts"], *container.pop("volumeMounts", [])]
    env = [*base["env"], *container.pop("env", [])]
    spec["containers"][0] = {**base, **container, "volumeMounts": mounts, "env": env}
    spec["volumes"].extend(volumes)
    text = yaml.dump_all([*documents, *more], Dumper=DUMPER)
    result = judged(of_text(text), Config())
    assert not result.unread
    return {f"{one.severity.value} {one.clause.value} {one.rule}" for one in result.findings}


@st.composite
def chosen(draw: st.DrawFn) -> list[tuple[str, str | bool]]:
    """Some options with values."""
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=6))
    pairs: list[tuple[str, str | bool]] = [(name, draw(st.sampled_from(VALUES[name]))) for name in names]
    for name in draw(st.lists(st.sampled_from(sorted(SWITCHES)), unique=True)):
        pairs.append((name, draw(st.sampled_from(SWITCHES[name]))))
    return pairs


def canonical(pairs: Sequence[tuple[str, str | bool]]) -> list[str]:
    words: list[str] = []
    for name, value in pairs:
        flag = f"--{name.replace('_', '-')}"
        words.append(f"{flag}={value}" if isinstance(value, str) else flag if value else f"--no-{flag[2:]}")
    return words


@st.composite
def respelled(draw: st.DrawFn, pairs: Sequence[tuple[str, str | bool]]) -> list[str]:
    """The same options in other words."""
    words: list[str] = []
    for name, value in pairs:
        option = TABLE.by_dest[name]
        if isinstance(value, bool):
            flags = [flag for flag in option.flags if (flag in option.negative) != value]
            words.append(draw(st.sampled_from(flags)))
            continue
        flag = draw(st.sampled_from(option.flags))
        if flag.startswith("--"):
            flag = draw(
                st.sampled_from([flag, flag.replace("_", "-"), f"--{flag[2:].replace('-', '_')}", shortest(flag)])
            )
        words.extend([f"{flag}={value}"] if draw(st.booleans()) else [flag, value])
    return words


def shortest(flag: str) -> str:
    """The shortest abbreviation that still means this option alone."""
    for end in range(3, len(flag)):
        if sum(1 for other in TABLE.by_flag if other.startswith(flag[:end])) == 1:
            return flag[:end]
    return flag


FORMS = ("list", "module", "image", "sh", "continued", "variables", "expanded", "array", "script", "config")


def in_form(form: str, words: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]], list[Any]]:  # noqa: PLR0911 - one per form
    """A container that runs the engine with these words, and what it needs beside."""
    quoted = " ".join(shlex.quote(word) for word in words)
    if form == "list":
        return {"command": ["vllm", "serve", "/m"], "args": words}, [], []
    if form == "module":
        return {"command": ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m", *words]}, [], []
    if form == "image":
        return {"args": ["--model", "/m", *words]}, [], []
    if form == "sh":
        return {"command": ["/bin/sh", "-c", f"exec vllm serve /m {quoted}"]}, [], []
    if form == "continued":
        lines = " \\\n    ".join(shlex.quote(word) for word in words)
        return {"command": ["bash", "-ec"], "args": [f"set -x\n# start\nvllm serve /m \\\n    {lines}\n"]}, [], []
    if form == "variables":
        env = [{"name": f"V{i}", "value": word} for i, word in enumerate(words)]
        return {"command": ["vllm", "serve", "/m"], "args": [f"$(V{i})" for i in range(len(words))], "env": env}, [], []
    if form == "expanded":
        env = [{"name": "ARGS", "value": " ".join(words)}]
        return {"command": ["bash", "-c", "vllm serve /m ${ARGS}"], "env": env}, [], []
    if form == "array":
        return {"command": ["bash", "-c", f'A=({quoted})\nvllm serve /m "${{A[@]}}"']}, [], []
    mounts = [{"name": "files", "mountPath": "/files"}]
    volumes = [{"name": "files", "configMap": {"name": "files"}}]
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files", "namespace": "serving"}}
    if form == "script":
        data = {"run.sh": f"#!/bin/sh\nexec vllm serve /m {quoted}\n"}
        return {"command": ["/files/run.sh"], "volumeMounts": mounts}, [{**config_map, "data": data}], volumes
    raise AssertionError(form)


@settings(max_examples=35, deadline=None)
@given(data=st.data(), form=st.sampled_from(FORMS[:-1]))
def test_respelling_keeps_the_verdict(data: st.DataObject, form: str) -> None:
    pairs = data.draw(chosen())
    words = data.draw(respelled(pairs))
    container, more, volumes = in_form(form, words)
    assert verdicts(container, more, volumes) == verdicts(
        {"command": ["vllm", "serve", "/m"], "args": canonical(pairs)}
    )


@settings(max_examples=12, deadline=None)
@given(pairs=chosen())
def test_a_config_file_keeps_the_verdict(pairs: list[tuple[str, str | bool]]) -> None:
    content = {name.replace("_", "-"): value for name, value in pairs}
    config_map = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "serving"},
        "data": {"vllm.yaml": yaml.safe_dump(content)},
    }  # fmt: skip
    container = {
        "command": ["vllm", "serve", "/m", "--config", "/c/vllm.yaml"],
        "volumeMounts": [{"name": "c", "mountPath": "/c"}],
    }
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    assert verdicts(container, [config_map], volumes) == verdicts(
        {"command": ["vllm", "serve", "/m"], "args": canonical(pairs)}
    )


class _Refused(Exception):  # noqa: N818 - the reference refuses
    pass


class _Reference(argparse.ArgumentParser):
    """Python's own parser with the table's options."""

    def __init__(self) -> None:
        super().__init__(add_help=False)
        self.add_argument("model_tag")
        for option in TABLE.options:
            self._add(option)

    def _add(self, option: Option) -> None:
        if option.kind in {"true", "switch"}:
            for flag in option.flags:
                action = "store_false" if flag in option.negative else "store_true"
                self.add_argument(flag, dest=option.dest, action=action, default=argparse.SUPPRESS)
            return
        kinds: dict[str, Any] = {"int": int, "float": float, "size": _size, "size-or-auto": _auto, "json": _json}
        kind = kinds.get(option.type, str)
        self.add_argument(
            *option.flags, dest=option.dest, default=argparse.SUPPRESS, nargs=option.nargs,
            type=(lambda text: None if text in {"", "None"} else kind(text)) if option.optional else kind,
        )  # fmt: skip

    def error(self, message: str) -> Any:
        raise _Refused(message)


def _size(text: str) -> int:
    value = size(text)
    if value is None:
        raise ValueError(text)
    return value


def _auto(text: str) -> int:
    return -1 if text.strip().lower() in {"auto", "-1"} else _size(text)


def _json(text: str) -> str:
    json.loads(text)
    return text


REFERENCE = _Reference()
# vLLM takes --config out before argparse sees the line.
FLAGS = {flag for option in TABLE.options if not option.choices for flag in option.flags} - {"--config"}
PIECES = st.one_of(
    st.sampled_from(sorted(FLAGS)),
    st.sampled_from(
        ["--tensor-parallel", "--max-num", "-t", "-q", "-qfp8", "--enf", "--block", "--no-enable-chunked", "-dp=2"]
    ),
    st.sampled_from(["4", "8k", "-1", "fp8", "None", "{}", "0.5", "true", "x"]),
    st.sampled_from(["--max-model-len=8K", "--stream-interval=10", "--block-size=", "--enforce-eager=1", "-tp=4"]),
)


@settings(max_examples=120, deadline=None)
@given(pieces=st.lists(PIECES, max_size=6))
def test_options_are_taken_as_argparse_takes_them(pieces: list[str]) -> None:
    line = resolve([Word(word, PLACE) for word in ["model", *pieces]], TABLE, PLACE)
    plain = {key: fact.value for key, fact in line.given.items() if isinstance(fact, Known)}
    try:
        expected = vars(REFERENCE.parse_args(["model", *pieces]))
    except (_Refused, ValueError):
        assert line.misuses, pieces
        return
    expected.pop("model_tag")
    assert not line.misuses, (pieces, line.misuses)
    assert plain == {key: tuple(value) if isinstance(value, list) else value for key, value in expected.items()}


def test_a_line_that_cannot_be_read_leaves_every_option_open() -> None:
    line = resolve([Word("m", PLACE), Word("", PLACE, "comes from a Secret")], TABLE, PLACE)
    assert isinstance(line.option("tensor_parallel_size"), Unknown)


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_tables_know_what_the_rules_ask_for(version: str) -> None:
    known = table(version)
    asked = {*VALUES, *SWITCHES, "pipeline_parallel_size", "custom_histogram_buckets", "scheduler_cls", "runner"}
    assert asked <= known.by_dest.keys()
    assert "vllm:inter_token_latency_seconds_bucket" in known.exposed
    assert "vllm:gpu_cache_usage_perc" not in known.exposed
