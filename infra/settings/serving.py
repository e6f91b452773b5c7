"""Sections about engines: pool, model, traffic, latency targets, the engine itself."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from srvmod.contract import (
    ENGINES_PER_NODE,
    ITL_P95_MS,
    LLAMA_3_70B,
    MODELS,
    P5_48XLARGE,
    TENSOR_PARALLEL_SIZE,
    TTFT_MS,
    CapacityType,
    Clause,
    EngineKind,
    KvCacheDtype,
)
from srvmod.infra.settings.base import (
    LIST,
    TAG_CHARACTERS,
    Allowed,
    ImageReference,
    Section,
    TagKey,
    Zone,
    _unique,
    count,
)
from srvmod.infra.settings.speculation import SpeculationSettings


class ReservationKind(StrEnum):
    """What a capacity reservation is: an on-demand one without end, or a block with start and end."""

    ON_DEMAND = "onDemand"
    BLOCK = "block"


MOST_RESERVATIONS = 30
MOST_RESERVATION_TAGS = 20
"""What an EC2NodeClass of Karpenter takes (CRD karpenter.k8s.aws_ec2nodeclasses, capacityReservationSelectorTerms)."""

ReservationTagValue = Annotated[
    str,
    Field(pattern=r"^([A-Za-z0-9_.:/=+@ -]{1,256}|\*)$"),
    Allowed(f"text in quotes of 1 to 256 {TAG_CHARACTERS}; or '*' for any value"),
]


class ReservationSettings(Section):
    """Capacity reservations or capacity blocks that engines may use: one by its id, or all that have certain tags."""

    id: (
        Annotated[
            str,
            Field(pattern=r"^cr-[0-9a-f]{8,17}$"),
            Allowed("a capacity reservation's id, such as cr-0123456789abcdef0"),
        ]
        | None
    ) = None
    """Reservation id; not together with `tags`."""
    tags: Annotated[
        dict[TagKey, ReservationTagValue],
        Field(max_length=MOST_RESERVATION_TAGS),
        Allowed(f"at most {MOST_RESERVATION_TAGS} tags with a value each ('*' for any)"),
    ] = Field(default_factory=dict)
    """Tags that a reservation must have, all of them; also those that are bought later count. Not together with
    `id`."""
    zone: Zone | None = None
    """Zone of the reservation that `id` names; one of the pool's. Those found by tags may be in any of them."""
    kind: Annotated[ReservationKind, Allowed("onDemand or block")] = ReservationKind.ON_DEMAND
    """Kind of reservation: a capacity block ends, and its nodes are drained before."""

    @property
    def selected_by(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """What tells this selection from others."""
        return self.id, tuple(sorted(self.tags.items()))


class PoolSettings(Section):
    """The Karpenter pool of p5 nodes."""

    instance_type: Annotated[
        str,
        Allowed(
            f"{P5_48XLARGE.name} (clause {Clause.MC_HW_01}): two NUMA nodes of four H100 joined by NVLink",
            also=lambda name: name == P5_48XLARGE.name,
        ),
    ] = P5_48XLARGE.name
    """Instance type of the pool."""
    zones: Annotated[
        tuple[Zone, ...], LIST, Field(min_length=1), Allowed("a list of different availability zones", also=_unique)
    ]
    """Zones where nodes may be launched; each one of `network.zones`."""
    offered_zones: Annotated[
        tuple[Zone, ...], LIST, Allowed("a list of different availability zones", also=_unique)
    ] = ()
    """Zones that offer p5.48xlarge to this account although the product's table doesn't list them."""
    ami_alias: Annotated[
        str,
        Field(pattern=r"^al2023@v[0-9]{8}$"),
        Allowed("an Amazon Linux 2023 release, such as al2023@v20260714; not 'latest', which replaces nodes"),
    ] = "al2023@v20260714"
    """AMI release; nodes change only when it does."""
    reservations: tuple[ReservationSettings, ...] = ()
    """Capacity reservations, used before on-demand."""
    capacity_types: Annotated[
        tuple[CapacityType, ...],
        LIST,
        Field(min_length=1),
        Allowed("a list of reserved and on-demand (spot would cut streams)", also=_unique),
    ] = (CapacityType.RESERVED, CapacityType.ON_DEMAND)
    """How nodes may be bought."""
    max_nodes: Annotated[int, *count(1, 1_000)] | None = None
    """Most nodes; from the plan when left out."""
    empty_node_seconds: Annotated[int, *count(10, 86_400)] = 1_800
    """How long a node stays when it holds nothing: a p5 that is wanted again may not be had again."""


class ModelSettings(Section):
    """The model and its weights."""

    id: Annotated[str, Allowed(" or ".join(sorted(MODELS)), also=lambda model: model in MODELS)] = LLAMA_3_70B.id
    """Model, by its name on the Hugging Face hub; its shape is what capacity is computed from."""
    served_name: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$"),
        Allowed("letters, digits, '.', '_', '-' and '/', such as llama-3-70b-instruct"),
    ] = "llama-3-70b-instruct"
    """Name that clients send as `model`."""
    revision: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"),
        Allowed(
            "the name of files that never change, such as a commit or a date: letters, digits, '.', '_' and '-'; "
            "not main, master or latest",
            also=lambda revision: revision not in {"main", "master", "latest", "head", "HEAD"},
        ),
    ]
    """Revision of the weights: a folder below `weightsPrefix` and on each node's NVMe."""
    weights_prefix: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$", max_length=256),
        Allowed("a key prefix without a slash at either end, such as models/llama-3-70b-instruct-fp8"),
    ] = "models/llama-3-70b-instruct-fp8"
    """Where in the weights bucket the revisions lie."""
    kv_cache_dtype: Annotated[KvCacheDtype, Allowed("fp8 or bf16")] = KvCacheDtype.FP8
    """Element type of the KV cache; fp8 needs `kvScales`, without them bf16 is used."""
    kv_scales: Annotated[bool, Allowed("true or false")] = False
    """Whether the checkpoint has k/v scales, which an FP8 KV cache needs to stay accurate."""
    max_model_len: Annotated[int, *count(1, 1_000_000)] = LLAMA_3_70B.context_tokens
    """Longest sequence that an engine takes, prompt and output together, in tokens."""

    @property
    def effective_kv_cache_dtype(self) -> KvCacheDtype:
        """The KV cache's element type that engines really use."""
        return self.kv_cache_dtype if self.kv_scales else KvCacheDtype.BF16


class TrafficSettings(Section):
    """The traffic mix that the fleet is sized for, at its peak."""

    sessions: Annotated[int, *count(1, 100_000)]
    """Sessions that stream at the same time."""
    prompt_tokens: Annotated[int, *count(1, 1_000_000)]
    """Mean prompt, in tokens."""
    output_tokens: Annotated[int, *count(1, 1_000_000)]
    """Mean answer, in tokens."""
    prefix_hit_rate: Annotated[float, Field(ge=0, lt=1), Allowed("a number from 0 to less than 1")] = 0.0
    """Share of prompt tokens found in the prefix cache."""
    tokens_per_second: (
        Annotated[float, Field(gt=0, le=1e9), Allowed("a positive number of tokens per second")] | None
    ) = None
    """Output tokens per second that all sessions together need; latency targets alone decide when left out."""


class SloSettings(Section):
    """Latency targets."""

    itl_p95_ms: Annotated[
        float,
        Field(gt=0, le=ITL_P95_MS.value),
        Allowed(f"more than 0, at most {ITL_P95_MS} (clause {Clause.INV_SRVMOD_02})"),
    ] = float(ITL_P95_MS.value)
    """95th percentile of inter-token latency, in ms."""
    ttft_ms: Annotated[float, Field(gt=0, le=TTFT_MS.value), Allowed(f"more than 0, at most {TTFT_MS} (summary)")] = (
        float(TTFT_MS.value)
    )
    """Time to first token, in ms."""


class EngineSettings(Section):
    """How an engine runs."""

    image: ImageReference
    """Image of the engine's container."""
    kind: Annotated[EngineKind, Allowed("vllm or simulated")] = EngineKind.VLLM
    """vLLM, or the simulated engine (simulated AWS only)."""
    tensor_parallel_size: Annotated[
        int,
        Allowed(
            f"{TENSOR_PARALLEL_SIZE.value} (clause {Clause.MC_HW_01}): the GPUs of one NUMA node",
            also=lambda size: size == TENSOR_PARALLEL_SIZE.value,
        ),
    ] = TENSOR_PARALLEL_SIZE.value
    """GPUs per engine."""
    engines_per_node: Annotated[
        int,
        Allowed(
            f"{ENGINES_PER_NODE.value} (clause {Clause.MC_HW_01}): one engine per NUMA node",
            also=lambda engines: engines == ENGINES_PER_NODE.value,
        ),
    ] = ENGINES_PER_NODE.value
    """Engines per p5."""
    started: Annotated[bool, Allowed("true or false")] = True
    """Whether engines run. While false everything else is made, and nothing asks for a p5: time to fill the weights
    bucket and the image repository before the first node is billed."""
    min_engines: Annotated[int, *count(1, 2_000)] | None = None
    """Fewest engines; what the plan says when left out."""
    plan_waiver: (
        Annotated[
            str,
            Field(pattern=r"^[^\s:][^:]{0,63}: \S.{7,199}$"),
            Allowed("who accepts it and why, such as 'head-of-ml: the mix is a forecast, traffic starts at a tenth'"),
        ]
        | None
    ) = None
    """Who accepts that `minEngines` misses the latency targets, and why: needed in prod, and only while it does."""
    max_engines: Annotated[int, *count(1, 2_000)] | None = None
    """Most engines that the scaler may run; half as many again as the fewest, in whole nodes, when left out."""
    max_num_batched_tokens: Annotated[int, *count(256, 16_384)] = 2_048
    """Token budget of one step: more makes prompts faster and tokens less smooth."""
    shutdown_timeout_seconds: Annotated[int, *count(1, 600)] = 60
    """Time that an engine lets its streams finish when it is told to stop. Karpenter waits as much longer before it
    buys a node (a rollout shall buy none), so a larger value makes a scale-out slower."""
    speculation: SpeculationSettings | None = None
    """Speculative decoding; off when left out."""
    extra_args: tuple[Annotated[str, Field(min_length=1, max_length=4_096), Allowed("a non-empty string")], ...] = ()
    """More arguments for vLLM, after the program's own."""


__all__ = [
    "MOST_RESERVATIONS",
    "EngineSettings",
    "ModelSettings",
    "PoolSettings",
    "ReservationKind",
    "ReservationSettings",
    "SloSettings",
    "TrafficSettings",
]
