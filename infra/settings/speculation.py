"""Speculative decoding (DEC-SRVMOD-01): off unless a stack asks for it, and only where the planner says it pays."""

from typing import Annotated

from pydantic import Field

from srvmod.capacity.speculation import ACCEPTANCE, MOST_DRAFT_TOKENS, Drafter, Drafting
from srvmod.contract import LLAMA_3_2_1B, Clause
from srvmod.infra.settings.base import Allowed, Section, count


class SpeculationSettings(Section):
    """A draft model that proposes tokens which the large model checks several at a time.

    Engines are planned without it, since how many drafts are taken is an assumption until it is measured.
    """

    method: Annotated[Drafter, Allowed("draft_model or eagle3")]
    """What drafts: a small model, or an EAGLE-3 head trained for this model; vLLM's names."""
    draft_model: Annotated[
        str,
        Allowed(
            f"{LLAMA_3_2_1B.id}; {Clause.DEC_SRVMOD_01} names a 1B of Llama 3, which doesn't exist",
            also=lambda model: model == LLAMA_3_2_1B.id,
        ),
    ] = LLAMA_3_2_1B.id
    """The small model of method draft_model: its vocabulary is Llama 3's."""
    draft_folder: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"),
        Allowed("the name of a folder in the revision: letters, digits, '.', '_' and '-'"),
    ] = "draft"
    """Folder in the revision of the weights that has the draft model's files."""
    tokens: Annotated[int, *count(1, MOST_DRAFT_TOKENS)] = 3
    """Most tokens that are drafted per step; fewer, and none, in larger batches."""
    acceptance: Annotated[float, Field(gt=0, lt=1), Allowed("a number more than 0 and less than 1")] = ACCEPTANCE
    """Share of drafts that are taken; measure it with vllm:spec_decode_num_accepted_tokens_total over
    vllm:spec_decode_num_draft_tokens_total."""

    @property
    def drafting(self) -> Drafting:
        """The capacity room's view of it."""
        return Drafting(self.method, self.tokens, self.acceptance)


__all__ = ["SpeculationSettings"]
