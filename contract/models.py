"""Model facts: shapes of the models that the capacity room can size."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """A dense transformer with grouped-query attention, as its config.json describes it.

    Counts are of elements, not bytes. Untied embedding and output head, no biases, as in Llama 3.
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
        return self.linear_parameters + 2 * self.embedding_parameters + (2 * self.layers + 1) * self.hidden


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

MODELS: dict[str, ModelShape] = {LLAMA_3_70B.id: LLAMA_3_70B}
"""Every model that can be named in a stack's `model.id`."""
