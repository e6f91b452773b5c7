"""Tables of engine versions: the simulated engine's agrees with ours, and the script that makes them works."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from srvmod.policies.engine_versions import DEFAULT_VERSION, Metric, table, versions
from srvmod.policies.engine_versions.extract import metrics, options, write

REPO = Path(__file__).parents[2]


def test_the_simulated_engine_knows_the_same_options() -> None:
    """Its table is a copy, since its image holds nothing of this room: a new version changes both."""
    file = REPO / f"local/engine/srvmod_engine/data/vllm-{DEFAULT_VERSION}-serve-args.json"
    other = {one["dest"]: set(one["flags"]) for one in json.loads(file.read_text())["options"]}
    ours = table(DEFAULT_VERSION)
    assert {option.dest for option in ours.options} == set(other)
    for option in ours.options:
        assert other[option.dest] <= set(option.flags), option.dest


def test_versions_are_in_order_and_say_where_they_come_from() -> None:
    assert versions() == ("0.32.0", "0.33.0")
    for version in versions():
        known = table(version)
        assert known.version == version
        assert f"vLLM {version}" in known.source
        assert len(known.options) > 300
        assert len(known.exposed) > 200


def test_exposed_names() -> None:
    assert "vllm:x_total" in Metric("vllm:x", "counter").exposed
    assert "vllm:x" not in Metric("vllm:x", "counter").exposed
    assert Metric("vllm:x", "gauge").exposed == {"vllm:x"}
    assert "vllm:x_bucket" in Metric("vllm:x", "histogram").exposed


def _optional(inner):
    def _optional_type(text):
        return None if text == "None" else inner(text)

    return _optional_type


def test_the_script_reads_a_parser_and_sources(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--block-size", type=_optional(int), choices=[8, 16])
    parser.add_argument("--chunked", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--name", nargs="+", default=object())
    rows = {row["dest"]: row for row in options(parser)}
    assert rows["block_size"] == {
        "dest": "block_size", "flags": ["--block-size"], "kind": "value", "type": "int", "optional": True,
        "choices": ["8", "16"],
    }  # fmt: skip
    assert rows["chunked"]["negative"] == ["--no-chunked"]
    assert rows["headless"]["kind"] == "true"
    assert rows["name"]["nargs"] == "+"
    assert "default" not in rows["name"]
    (tmp_path / "m.py").write_text(
        'a = Gauge(name="vllm:a")\nb = self._counter_cls("vllm:b", "text")\nC = {"vllm:c": 1}\n'
    )
    assert metrics(tmp_path) == {"vllm:a": "gauge", "vllm:b": "counter", "vllm:c": "any"}
    file = tmp_path / "t.json"
    write({"version": "1", "options": list(rows.values()), "metrics": []}, file)
    assert json.loads(file.read_text())["options"][0]["dest"] == "block_size"
