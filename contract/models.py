"""Model facts: shapes of the models that the capacity room can size."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast


@dataclass(frozen=True)
class ModelShape:
    """A dense transformer with grouped-query attention, as its config.json describes it.

    Counts are of elements, not bytes. No biases, gated feed-forward, as in Llama 3.
    """

    id: str
    """Name on the Hugging Face hub."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    context_tokens: int
    """Longest sequence the model was trained for; vLLM refuses a longer `--max-model-len`."""
    tied_embeddings: bool = False
    """Whether the output head is the embedding itself."""

    @property
    def linear_parameters(self) -> int:
        """Parameters of the linear layers: the ones that are stored in FP8."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.ffn)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding; the output head has as many. Both stay bf16."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters: linear layers, embedding, output head and norms."""
        tables = 1 if self.tied_embeddings else 2
        return self.linear_parameters + tables * self.embedding_parameters + (2 * self.layers + 1) * self.hidden


LLAMA_3_70B = ModelShape(
    id="meta-llama/Meta-Llama-3-70B-Instruct",
    layers=80,
    hidden=8_192,
    heads=64,
    kv_heads=8,
    head_dim=128,
    ffn=28_672,
    vocabulary=128_256,
    context_tokens=8_192,
)

LLAMA_2_70B = ModelShape(
    id="meta-llama/Llama-2-70b-chat-hf",
    layers=80,
    hidden=8_192,
    heads=64,
    kv_heads=8,
    head_dim=128,
    ffn=28_672,
    vocabulary=32_000,
    context_tokens=4_096,
)
"""What MLPerf's llama2-70b results were measured with."""
LLAMA_3_1_70B = ModelShape(
    id="meta-llama/Llama-3.1-70B-Instruct",
    layers=80,
    hidden=8_192,
    heads=64,
    kv_heads=8,
    head_dim=128,
    ffn=28_672,
    vocabulary=128_256,
    context_tokens=131_072,
)
"""The shape of Llama 3.1 and 3.3, which most published measurements use: Llama 3 with longer contexts."""
LLAMA_3_2_1B = ModelShape(
    id="meta-llama/Llama-3.2-1B-Instruct",
    layers=16,
    hidden=2_048,
    heads=32,
    kv_heads=8,
    head_dim=64,
    ffn=8_192,
    vocabulary=128_256,
    context_tokens=131_072,
    tied_embeddings=True,
)
"""The smallest Llama with Llama 3's vocabulary: what could draft for it (DEC-SRVMOD-01)."""

MODELS: dict[str, ModelShape] = {LLAMA_3_70B.id: LLAMA_3_70B}
"""Every model that can be named in a stack's `model.id`."""


class ModelConfigError(ValueError):
    """A config.json that doesn't describe a dense decoder of this kind; the text names every key that is wrong."""


_COUNTS: Final = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "ffn": "intermediate_size",
    "vocabulary": "vocab_size",
    "context_tokens": "max_position_embeddings",
}
_EXPERTS: Final = ("num_local_experts", "num_experts", "n_routed_experts")


def shape_from_config(id: str, text: str) -> ModelShape:
    """The shape that a Hugging Face `config.json` describes. Raises ModelConfigError with every problem."""
    try:
        document: object = json.loads(text)
    except ValueError as error:
        raise ModelConfigError(f"config.json of {id}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ModelConfigError(f"config.json of {id}: not an object; allowed: the model's own config.json")
    config = cast("Mapping[str, object]", document)
    problems: list[str] = []

    def count(key: str, default: int | None = None) -> int:
        value = config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
            problems.append(f"{key} = {value!r}; allowed: a whole number from 1 to 1,000,000,000")
            return 1
        return value

    for key in _EXPERTS:
        experts = config.get(key)
        if isinstance(experts, int) and experts > 1:
            problems.append(f"{key} = {experts}: a mixture of experts; allowed: dense models")
    found = {field: count(key) for field, key in _COUNTS.items()}
    kv_heads = count("num_key_value_heads", found["heads"])
    head_dim = count("head_dim", max(1, found["hidden"] // found["heads"]))
    if found["heads"] % kv_heads:
        problems.append(f"num_key_value_heads = {kv_heads}: doesn't divide the {found['heads']} attention heads")
    if problems:
        raise ModelConfigError(f"config.json of {id}: " + "; ".join(problems))
    tied = bool(config.get("tie_word_embeddings", False))
    return ModelShape(id=id, kv_heads=kv_heads, head_dim=head_dim, tied_embeddings=tied, **found)
