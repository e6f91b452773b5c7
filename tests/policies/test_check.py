"""The command: exit codes, formats, waivers, folders, and what it doesn't import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from srvmod.contract import Clause
from srvmod.ops.cli import ROOMS
from srvmod.policies.check import OK, UNREADABLE, VIOLATIONS, Result, judged
from srvmod.policies.commands import FORMATS as OFFERED
from srvmod.policies.commands import check
from srvmod.policies.config import Config, ConfigError, from_values
from srvmod.policies.facts import NodeClass, Unknown
from srvmod.policies.readers.tree import from_plain
from srvmod.policies.readers.world import of_paths, of_text, of_trees
from srvmod.policies.report import FORMATS, render
from srvmod.policies.rules import Severity, Topic
from tests.policies.broken import BROKEN, serving
from tests.policies.table import HERE, built

REPO = Path(__file__).parents[2]
TODAY = date(2026, 12, 1)
BASE = (HERE / "base.yaml").read_text()
TP8 = BASE.replace("--tensor-parallel-size=4", "--tensor-parallel-size=8")
ENVIRONMENTS = sorted(path.name for path in (REPO / "manifests").iterdir() if (path / "serving").is_dir())


def result_of(text: str, config: Config | None = None) -> Result:
    return judged(of_text(text, "m.yaml"), config or Config(), TODAY)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import typer

    app = typer.Typer()
    app.command()(check)
    monkeypatch.chdir(tmp_path)
    return lambda *words, **more: CliRunner().invoke(app, list(words), **more)


def test_environments_together_are_judged_as_each_alone() -> None:
    """Their objects have the same names; what an engine is compared with lies beside it."""
    folders = [str(REPO / "manifests" / name) for name in ENVIRONMENTS if name != "local"]
    found = judged(of_paths(folders), Config(), TODAY)
    assert [str(one) for one in found.findings] == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_what_the_environments_apply_is_clean(environment: str) -> None:
    world = of_paths([str(REPO / "manifests" / environment)])
    result = judged(world, Config(), TODAY)
    assert len(world.engines) == 1
    assert result.exit_code == OK, render(result, "text")
    assert not result.waived


def test_the_local_simulation_is_listed() -> None:
    result = judged(of_paths([str(REPO / "manifests/local")]), Config(), TODAY)
    assert [one.rule for one in result.of(Severity.NOTE)] == ["simulated-engine"]


@pytest.mark.parametrize("clause", sorted(BROKEN))
def test_each_clause_broken_in_the_program_is_named(clause: str) -> None:
    assert set(BROKEN) == {one.value for one in Clause if one.enforced}
    good, broken = (serving("prod", one) for one in (None, clause))
    assert result_of(good).exit_code == OK
    found = result_of(broken)
    assert found.exit_code != OK
    assert clause in {one.clause for one in (*found.of(Severity.ERROR), *found.of(Severity.UNKNOWN))}


def test_exit_codes(run, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(BASE)
    (tmp_path / "bad.yml").write_text(TP8)
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/bad.yaml").write_text(TP8)
    assert run("good.yaml").exit_code == OK
    assert run("bad.yml").exit_code == VIOLATIONS
    assert run("broken.yaml").exit_code == UNREADABLE
    assert run("good.yaml", "broken.yaml").exit_code == UNREADABLE
    everything = run(".")
    assert everything.exit_code == VIOLATIONS
    assert "broken.yaml:2: can't read" in everything.output
    assert "3 files" in everything.output
    assert run("missing.yaml").exit_code == UNREADABLE
    (tmp_path / "empty").mkdir()
    assert run("empty").exit_code == UNREADABLE


def test_a_kustomization_is_known_by_its_file(run, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    assert run(".").exit_code == OK
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\nimages: [{name: a, newTag: b}]\n")
    result = run(".")
    assert result.exit_code == UNREADABLE
    assert "kustomization.yaml:2: can't read: is a kustomization that isn't built" in result.output


def test_a_rule_file_is_read_like_a_prometheus_rule(run, tmp_path: Path) -> None:
    others = [one for one in yaml.safe_load_all(BASE) if one["kind"] != "PrometheusRule"]
    (tmp_path / "engine.yaml").write_text(yaml.safe_dump_all(others))
    metric = "vllm:inter_token_latency_seconds"
    file = tmp_path / "engine.rules.yaml"
    for edge, code in (("0.03", 0), ("0.05", 1)):
        share = f'1 - sum(rate({metric}_bucket{{le="{edge}"}}[5m])) / sum(rate({metric}_count[5m])) > 0.05'
        file.write_text(f"groups:\n  - name: latency\n    rules:\n      - alert: Itl\n        expr: '{share}'\n")
        result = run("--whole", str(tmp_path))
        assert result.exit_code == code, result.output
    assert "engine.rules.yaml:4: " in result.output
    assert "alert Itl speaks of 50 ms" in result.output


def test_standard_input(run) -> None:
    assert run("-", input=TP8).exit_code == VIOLATIONS
    assert run("-", input=BASE).exit_code == OK


def test_options_that_are_wrong_are_named(run, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(BASE)
    (tmp_path / "c.yaml").write_text("sessions: -1\nfoo: 2\n")
    config = run("m.yaml", "--config", "c.yaml")
    assert config.exit_code == UNREADABLE
    assert "c.yaml: sessions = -1" in config.output
    assert "c.yaml: foo" in config.output
    version = run("m.yaml", "--engine-version", "1.0")
    assert version.exit_code == UNREADABLE
    assert "0.32.0, 0.33.0" in version.output
    assert run("m.yaml", "--format", "html").exit_code == UNREADABLE


def test_two_versions_side_by_side(run, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(BASE.replace("- --enable-chunked-prefill", "- --disable-prefix-caching"))
    assert run("m.yaml").exit_code == OK
    older = run("m.yaml", "--engine-version", "0.32.0")
    assert older.exit_code == VIOLATIONS
    assert "vLLM 0.32.0 has no option --disable-prefix-caching" in older.output


def test_every_format_says_the_same() -> None:
    result = result_of(TP8 + "---\nx: [\n")
    assert set(FORMATS) == set(OFFERED)
    errors = len(result.of(Severity.ERROR))
    content = json.loads(render(result, "json"))
    assert content["exitCode"] == VIOLATIONS
    assert len([one for one in content["findings"] if one["severity"] == "error"]) == errors
    assert len(content["unread"]) == 1
    sarif = json.loads(render(result, "sarif"))
    found = sarif["runs"][0]["results"]
    assert sarif["version"] == "2.1.0"
    assert {one["ruleId"] for one in found} >= {"MC-HW-01/tensor-parallel", "unread"}
    assert all(one["locations"][0]["physicalLocation"]["region"]["startLine"] > 0 for one in found)
    suite = ElementTree.fromstring(render(result, "junit"))
    assert int(suite.get("failures", "0")) == errors
    assert int(suite.get("errors", "0")) == 1 + len(result.of(Severity.UNKNOWN))
    commands = render(result, "github").splitlines()
    assert all(line.startswith("::") for line in commands)
    assert any(line.startswith("::error file=m.yaml,line=") and "MC-HW-01" in line for line in commands)
    text = render(result, "text")
    assert "m.yaml:27: error: MC-HW-01: tensor_parallel_size is 8 [tensor-parallel]" in text


ODD = "a b#c%d,e:f\udcff\x1b.yaml"
HOSTILE = "8 \x1b[31m\n::error::x\u202e"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_the_input_says_cannot_steer_a_terminal_or_a_log(name: str) -> None:
    text = BASE.replace("--tensor-parallel-size=4", json.dumps(f"--tensor-parallel-size={HOSTILE}"))
    report = render(judged(of_text(text, ODD), Config(), TODAY), name)
    report.encode("utf-8")
    assert not [char for char in report if char < " " and char != "\n"]
    assert not any(line.startswith("::error::") for line in report.splitlines())


def test_sarif_has_what_its_specification_requires() -> None:
    """SARIF 2.1.0: what each object must have, rules that results name, URIs that are relative references."""
    (run,) = json.loads(render(judged(of_text(TP8, ODD), Config(), TODAY), "sarif"))["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = {one["id"] for one in driver["rules"]}
    assert len(rules) == len(driver["rules"])
    for one in run["results"]:
        assert one["ruleId"] in rules
        assert one["level"] in {"none", "note", "warning", "error"}
        assert one["message"]["text"]
        (location,) = one["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == "a%20b%23c%25d,e:f%FF%1B.yaml"
        assert location["physicalLocation"]["region"]["startLine"] >= 1


def test_github_escapes_what_ends_a_property() -> None:
    first = render(judged(of_text(TP8, "a,b:c%.yaml"), Config(), TODAY), "github").splitlines()[0]
    assert first.startswith("::error file=a%2Cb%3Ac%25.yaml,line=")
    assert first.count("::") == 2


def test_a_pipe_in_a_folder_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (unread,) = of_paths([str(tmp_path)]).unread
    assert unread.why == "isn't a regular file"


def test_a_line_is_the_line_of_the_value() -> None:
    finding = next(one for one in result_of(TP8).findings if one.rule == "tensor-parallel")
    assert TP8.splitlines()[(finding.place.line or 0) - 1].strip() == "- --tensor-parallel-size=8"
    assert finding.place.path == "spec.template.spec.containers[0].args[2]"
    assert finding.place.object == "Deployment serving/engine"


def with_comment(comment: str) -> str:
    line = "            - --block-size=32"
    return BASE.replace("            - --block-size=16", f"{line} {comment}" if comment else line)


def test_a_waiver_on_the_line() -> None:
    result = result_of(with_comment("# srvmod: waive MC-KV-01 until 2027-03-31: trial, ticket 12"))
    assert result.exit_code == OK
    ((finding, waiver),) = result.waived
    assert finding.rule == "kv-block"
    assert (waiver.until, waiver.reason) == (date(2027, 3, 31), "trial, ticket 12")
    for name in FORMATS:
        if name != "sarif":
            assert "2027-03-31" in render(result, name), name
    sarif = json.loads(render(result, "sarif"))["runs"][0]["results"]
    assert sarif[0]["suppressions"][0]["justification"] == "until 2027-03-31: trial, ticket 12"


def test_a_waiver_above_the_line() -> None:
    text = with_comment("").replace(
        "            - --block-size=32",
        "            # srvmod: waive MC-KV-01/kv-block until 2027-03-31: trial\n            - --block-size=32",
    )
    assert result_of(text).exit_code == OK


def test_a_waiver_by_annotation() -> None:
    documents = built(
        {
            "flags": {"--block-size": 32},
            "set": {"metadata/annotations": {"srvmod.dev/waive.MC-KV-01": "until 2027-03-31: trial"}},
        }
    )
    assert result_of(yaml.safe_dump_all(documents)).exit_code == OK


@pytest.mark.parametrize(
    ("comment", "problem"),
    [
        ("# srvmod: waive MC-KV-01 until 2026-11-30: trial", "ended on 2026-11-30"),
        ("# srvmod: waive MC-KV-01: trial", "has no last day"),
        ("# srvmod: waive MC-KV-01 until 2027-03-31", "has no reason"),
        ("# srvmod: waive MC-KV-01 until soon: trial", "isn't a date"),
        ("# srvmod: waive until 2027-03-31: trial", "names no clause"),
    ],
)
def test_a_waiver_that_cannot_be_used(comment: str, problem: str) -> None:
    result = result_of(with_comment(comment))
    assert result.exit_code == VIOLATIONS
    assert not result.waived
    assert any(problem in one.what for one in result.findings if one.clause is Topic.OPERATIONS)
    assert any(one.rule == "kv-block" for one in result.of(Severity.ERROR))


def test_a_waiver_of_another_clause_or_line_covers_nothing() -> None:
    other = result_of(with_comment("# srvmod: waive MC-HW-01 until 2027-03-31: trial"))
    assert other.exit_code == VIOLATIONS
    assert any("covers nothing" in one.what for one in other.of(Severity.WARNING))
    elsewhere = "# srvmod: waive MC-KV-01 until 2027-03-31: trial\n" + with_comment("")
    assert result_of(elsewhere).exit_code == VIOLATIONS


def test_levels() -> None:
    text = with_comment("")
    assert result_of(text, Config(levels={"MC-KV-01": "warning"})).exit_code == OK
    assert result_of(text, Config(levels={"MC-KV-01/kv-block": "off"})).findings == ()
    assert result_of(text, Config(levels={"MC-HW-01": "off"})).exit_code == VIOLATIONS


def test_configuration_says_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"levels\.MC-HW-01"):
        from_values({"levels": {"MC-HW-01": "loud"}}, "c")
    with pytest.raises(ConfigError):
        from_values([1], "c")


def test_plain_values_and_what_is_unknown_at_preview() -> None:
    marker = object()
    documents = built({})
    documents[0]["spec"]["template"]["spec"]["containers"][0]["args"][2] = marker
    node_class = documents[2]
    node_class["spec"]["userData"] = marker
    trees = [(f"urn:{one['kind']}", from_plain(one, {id(marker): "isn't known at preview"})) for one in documents]
    world = of_trees(trees)
    result = judged(world, Config(), TODAY)
    unknown = result.of(Severity.UNKNOWN)
    assert {"MC-HW-01", "INV-SRVMOD-03"} <= {one.clause.value for one in unknown}
    assert all("isn't known at preview" in one.what for one in unknown)
    assert {one.place.source for one in unknown} == {"urn:Deployment", "urn:EC2NodeClass"}
    assert result.exit_code == UNREADABLE
    (found,) = world.node_classes
    assert isinstance(found, NodeClass)
    assert isinstance(found.topology_policy, Unknown)


def test_the_check_needs_no_pulumi_and_starts_no_network() -> None:
    heavy = ["pulumi", "boto3", "kubernetes", "httptools", "moto"]
    code = (
        "import sys\n"
        f"for name in {heavy!r}: sys.modules[name] = None\n"
        "import socket\n"
        "def refuse(*_a, **_k): raise SystemExit('network')\n"
        "socket.socket.connect = refuse\n"
        "sys.argv = ['srvmod', 'check', 'manifests/prod']\n"
        "from srvmod.ops.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == OK, done.stdout + done.stderr


def test_the_command_is_listed() -> None:
    assert ROOMS["check"][0] == "srvmod.policies.commands"
