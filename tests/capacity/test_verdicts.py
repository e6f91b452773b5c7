"""Claims with the model's evidence: verdicts that are computed agree with the contract; the page is fresh."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from srvmod.capacity import CapacityError, Layout
from srvmod.capacity.commands import PAGE, claims
from srvmod.capacity.evidence import EVIDENCE, MIXES, nodes_at
from srvmod.capacity.speculation import TARGET_MS, accepted, break_even, by_batch, most_sessions, speculate
from srvmod.capacity.verdicts import as_json, as_markdown, rows
from srvmod.contract import CLAIMS, JUDGEMENTS, LLAMA_3_70B, SESSIONS, Clause, Method, Verdict

APP = typer.Typer()
APP.command()(claims)
ROWS = rows()


@pytest.mark.parametrize("row", [row for row in ROWS if row.evidence], ids=lambda row: row.claim.id)
def test_computed_verdicts_are_the_contracts(row: object) -> None:
    """Computed from the model each time: a refit that turns a verdict fails here."""
    assert row.evidence.verdict is row.claim.verdict  # type: ignore[attr-defined]


def test_evidence_is_of_claims() -> None:
    assert set(EVIDENCE) <= {claim.id for claim in CLAIMS}
    by_model = {claim.id for claim in CLAIMS if JUDGEMENTS[claim.id].method is Method.MODEL}
    assert by_model == by_model & set(EVIDENCE), by_model - set(EVIDENCE)


def test_one_p5_for_everything_is_false_for_every_mix() -> None:
    """Also where every step takes the shortest time that the model's error allows."""
    for mix in MIXES:
        assert nodes_at(mix, 23.2).low > 1
    told = next(row for row in ROWS if row.claim.id == "sessions")
    assert told.evidence is not None
    assert "one p5 for all of it: false for every mix" in told.evidence.text


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown(ROWS), "fix: srvmod claims --markdown"


def test_check_tells_a_stale_page(tmp_path: Path) -> None:
    run = CliRunner()
    page = tmp_path / "claims.md"
    assert run.invoke(APP, ["--check", "--page", str(page)]).exit_code == 1
    assert run.invoke(APP, ["--markdown", "--page", str(page)]).exit_code == 0
    assert run.invoke(APP, ["--check", "--page", str(page)]).exit_code == 0
    page.write_text(page.read_text() + " ")
    assert run.invoke(APP, ["--check", "--page", str(page)]).exit_code == 1


def test_json_has_every_claim_and_clause() -> None:
    found = json.loads(CliRunner().invoke(APP, ["--json"]).stdout)
    assert [claim["id"] for claim in found["claims"]] == [claim.id for claim in CLAIMS]
    assert {claim["clause"] for claim in found["claims"]} == {clause.value for clause in Clause}
    assert sum(found["counts"].values()) == len(CLAIMS)
    for claim in found["claims"]:
        assert (claim["condition"] is not None) is (claim["verdict"] == Verdict.CONDITIONAL)
        assert (claim["settledBy"] is not None) is (claim["verdict"] == Verdict.UNKNOWN)
    assert as_json(ROWS) == found


def test_speculation_by_batch_size() -> None:
    """DEC-SRVMOD-01: the gain shrinks with the batch, and ends."""
    found = by_batch(LLAMA_3_70B, Layout(), 768)
    gains = [item.speedup for item in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.5
    assert gains[-1] < 1
    assert found[-1].tokens == 0
    last = break_even(LLAMA_3_70B, Layout(), 768)
    assert speculate(LLAMA_3_70B, Layout(), last, context=768).tokens > 0
    assert speculate(LLAMA_3_70B, Layout(), last + 1, context=768).tokens == 0


def test_sessions_at_45_tokens_per_second() -> None:
    plain = most_sessions(LLAMA_3_70B, Layout(), 768, drafting=False)
    drafting = most_sessions(LLAMA_3_70B, Layout(), 768, drafting=True)
    assert 0 < plain < drafting < SESSIONS.value // 2
    assert pytest.approx(1e3 / 45) == TARGET_MS


def test_accepted_tokens() -> None:
    assert accepted(0.0, 3) == 1
    assert accepted(0.5, 2) == 1.75
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(CapacityError):
            accepted(wrong, 2)
