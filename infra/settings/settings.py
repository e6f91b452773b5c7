"""All settings of a stack, and what follows from them."""

from functools import cached_property

from pydantic import Field

from srvmod import __version__
from srvmod.capacity import Plan
from srvmod.contract import KV_BLOCK_TOKENS, MODELS, EngineKind, ModelShape
from srvmod.infra.settings.base import Section, TagKey, TagValue
from srvmod.infra.settings.cloud import AwsSettings, ClusterSettings, NetworkSettings, Partition
from srvmod.infra.settings.edge import ChartsSettings, GatewaySettings, ImagesSettings
from srvmod.infra.settings.monitoring import MonitoringSettings
from srvmod.infra.settings.names import PRODUCT
from srvmod.infra.settings.prices import PricesSettings
from srvmod.infra.settings.serving import (
    EngineSettings,
    ModelSettings,
    PoolSettings,
    SloSettings,
    TrafficSettings,
)
from srvmod.infra.settings.sizing import Sizing, size

CPU_KV_BLOCK_TOKENS = 32
"""vLLM on CPU takes only multiples of 32; the visible exemption from MC-KV-01, for simulated AWS only."""


class Settings(Section):
    """Settings of one stack: what its `Pulumi.<stack>.yaml` says, checked, with defaults filled in."""

    stack: str = Field(exclude=True)
    """Name of the Pulumi stack; not a key of the file."""
    aws: AwsSettings
    network: NetworkSettings
    cluster: ClusterSettings = ClusterSettings()
    pool: PoolSettings
    model: ModelSettings
    traffic: TrafficSettings
    slo: SloSettings = SloSettings()
    engine: EngineSettings
    gateway: GatewaySettings = GatewaySettings()
    images: ImagesSettings = ImagesSettings()
    charts: ChartsSettings = ChartsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    prices: PricesSettings = PricesSettings()
    tags: dict[TagKey, TagValue] = Field(default_factory=dict)
    """Tags of everything that is made in AWS, beside the program's own."""

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster, and the value of Karpenter's discovery tags."""
        return self.cluster.name or f"{PRODUCT}-{self.stack}"

    @property
    def model_shape(self) -> ModelShape:
        """Layers, heads and sizes of the model."""
        return MODELS[self.model.id]

    @cached_property
    def sizing(self) -> Sizing:
        """Engines, nodes and limits. Raises CapacityError only for settings that `load` would have refused."""
        return size(self.traffic, self.model, self.slo, self.engine, self.pool.max_nodes)

    @property
    def plan(self) -> Plan:
        """What the traffic mix needs, without overrides."""
        return self.sizing.plan

    @property
    def kv_block_tokens(self) -> int:
        """Block size of the KV cache: the contract's, but for real vLLM on the CPUs of a simulated stack."""
        on_cpu = self.aws.simulated and self.engine.kind is EngineKind.VLLM
        return CPU_KV_BLOCK_TOKENS if on_cpu else KV_BLOCK_TOKENS.value

    @property
    def ecr_registry(self) -> str:
        """Host of the account's own registry."""
        suffix = "amazonaws.com.cn" if self.aws.partition is Partition.CHINA else "amazonaws.com"
        return f"{self.aws.account_id}.dkr.ecr.{self.aws.region}.{suffix}"

    @property
    def weight_cache_repository(self) -> str:
        """Name of the stack's own ECR repository; stacks of one account each have theirs."""
        return f"{self.cluster_name}/weight-cache"

    @property
    def weight_cache_image(self) -> str:
        """Image of the weight cache: the setting, or this release's image in the stack's own repository."""
        return self.images.weight_cache or f"{self.ecr_registry}/{self.weight_cache_repository}:{__version__}"
