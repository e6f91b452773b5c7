"""Claims, judgements and the model's evidence together: what `srvmod claims` shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from srvmod.capacity.evidence import EVIDENCE
from srvmod.capacity.memory_evidence import Evidence
from srvmod.contract import CLAIMS, JUDGEMENTS, NUMBERS, SPECIFICATION, Claim, Judgement, Number, Verdict

_NUMBERS: Final = {number.id: number for number in NUMBERS}
GENERATED: Final = "<!-- written by `srvmod claims --markdown`; don't edit -->"


@dataclass(frozen=True)
class Row:
    """A claim with everything that is known about it. `evidence` is None where the model has nothing to say."""

    claim: Claim
    judgement: Judgement
    evidence: Evidence | None

    @property
    def verdict(self) -> Verdict:
        """The model's own verdict where it has one, else the contract's; a test holds the two equal."""
        return self.evidence.verdict if self.evidence else self.claim.verdict

    @property
    def value(self) -> str:
        """Value and unit; empty for sentences without a number."""
        number = _number(self.claim)
        return str(number) if number else ""


def _number(claim: Claim) -> Number[int] | Number[float] | None:
    return _NUMBERS.get(claim.id)


def rows() -> list[Row]:
    """Every claim, in the order of the contract."""
    return [
        Row(claim, JUDGEMENTS[claim.id], EVIDENCE[claim.id]() if claim.id in EVIDENCE else None) for claim in CLAIMS
    ]


def as_json(found: Sequence[Row]) -> dict[str, Any]:
    """Claims as plain values."""
    return {
        "specification": SPECIFICATION,
        "counts": {verdict.value: sum(row.verdict is verdict for row in found) for verdict in Verdict},
        "claims": [
            {
                "id": row.claim.id,
                "clause": row.claim.clause.value,
                "section": row.claim.section,
                "quote": row.claim.quote,
                "value": number.value if number else None,
                "unit": number.unit.value if number else None,
                "verdict": row.verdict.value,
                "condition": None if row.verdict is Verdict.UNKNOWN else row.judgement.condition,
                "settledBy": row.judgement.condition if row.verdict is Verdict.UNKNOWN else None,
                "judgedBy": row.judgement.method.value,
                "why": row.claim.why,
                "evidence": row.evidence.text if row.evidence else None,
            }
            for row in found
            for number in [_number(row.claim)]
        ],
    }


def as_markdown(found: Sequence[Row]) -> str:
    """Claims as a page, by clause."""
    counts = ", ".join(f"{sum(row.verdict is verdict for row in found)} {verdict.value}" for verdict in Verdict)
    lines = [
        GENERATED,
        f"# What of {SPECIFICATION} is true",
        "",
        f'{len(found)} claims: {counts}. Each is cited from the specification. Figures under "computed" come from the '
        "capacity model (docs/capacity.md): Llama-3-70B with FP8 weights and KV cache, TP 4 on H100, two engines per "
        "p5.48xlarge; in brackets what 80 % of measured times of unseen stacks lay within. None of them was measured "
        "on a GPU of ours.",
    ]
    clause = None
    for row in sorted(found, key=lambda row: list(type(row.claim.clause)).index(row.claim.clause)):
        if row.claim.clause is not clause:
            clause = row.claim.clause
            lines += [
                "",
                f"## {clause.value}",
                "",
                "| claim | verdict | judged by | why |",
                "| --- | --- | --- | --- |",
            ]
        lines.append(_line(row))
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    quote = row.claim.quote.strip("| ").replace("|", "/")
    value = f" **{row.value}**" if row.value else ""
    said = row.verdict.value
    why = row.claim.why
    if row.judgement.condition:
        why = f"{'settled by' if row.verdict is Verdict.UNKNOWN else 'true'} {row.judgement.condition}. {why}"
    if row.evidence:
        why += f". Computed: {row.evidence.text}"
    cells = [f"`{row.claim.id}`{value}: {quote}", said, row.judgement.method.value, why]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
