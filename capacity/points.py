"""Measured points: published throughput and latency of one serving system. `table` reads them from a CSV."""

from dataclasses import dataclass
from enum import StrEnum

from srvmod.capacity.layout import Layout
from srvmod.capacity.stacks import Stack
from srvmod.contract import INSTANCE_TYPES, KvCacheDtype, Milliseconds, ModelShape, to_seconds


class Kind(StrEnum):
    """How a point was measured."""

    THROUGHPUT = "tput"
    """All requests offered at once, output tokens per second over the whole run."""
    OFFLINE = "offline"
    """The same with a data set's own lengths."""
    ONLINE = "online"
    """Requests arrive at a rate; mean inter-token latency at the concurrency that rate and latency give."""
    BATCH_1 = "b1"
    """One request at a time, mean inter-token latency."""

    @property
    def is_throughput(self) -> bool:
        """Whether the measured value is tokens per second, not ms."""
        return self in (Kind.THROUGHPUT, Kind.OFFLINE)


@dataclass(frozen=True)
class Point:
    """One published measurement. `measured` is tokens/s of the whole system, or ms between tokens."""

    id: str
    kind: Kind
    model: ModelShape
    stack: Stack
    version: str
    gpu: str
    tensor_parallel_size: int
    replicas: int
    weight_bytes: float
    kv_bytes: int
    prompt_tokens: float
    output_tokens: float
    tokens_per_second: float | None
    itl_ms: Milliseconds | None
    ttft_ms: Milliseconds | None
    ttft_p99_ms: Milliseconds | None
    requests: int | None
    most_sequences: int | None
    url: str

    @property
    def measured(self) -> float:
        """The value that a prediction is compared with."""
        value = self.tokens_per_second if self.kind.is_throughput else self.itl_ms
        assert value is not None  # a table has no points without it
        return value

    @property
    def layout(self) -> Layout:
        """One engine of the measured system."""
        instance = next(item for item in INSTANCE_TYPES.values() if item.gpu.name == self.gpu)
        return Layout(
            instance=instance,
            tensor_parallel_size=self.tensor_parallel_size,
            engines_per_node=1,
            kv_cache_dtype=KvCacheDtype.FP8 if self.kv_bytes == 1 else KvCacheDtype.BF16,
            weight_bytes_per_element=self.weight_bytes,
            stack=self.stack,
        )

    @property
    def family(self) -> str:
        """Points that share a source and a stack: what leave-one-family-out leaves out together."""
        source = self.id.split("-")[0].split(" ")[0]
        if self.version.startswith("mlperf"):
            source = "mlperf"
        return f"{source}/{self.stack.value}"

    @property
    def concurrency(self) -> float:
        """Decoding sequences per engine: one, or by Little's law from rate and latency."""
        if self.kind is Kind.BATCH_1:
            return 1.0
        assert self.tokens_per_second is not None
        assert self.itl_ms is not None
        return self.tokens_per_second / self.replicas * to_seconds(self.itl_ms)
