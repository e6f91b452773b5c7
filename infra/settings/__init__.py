"""Typed settings of a stack: `Pulumi.<stack>.yaml` in, one frozen `Settings` out, or every problem at once."""

from srvmod.infra.settings.cloud import (
    AccessScope,
    AdminSettings,
    AwsSettings,
    ClusterSettings,
    ExistingNetwork,
    NatGateways,
    NetworkSettings,
    Partition,
    SystemNodesSettings,
)
from srvmod.infra.settings.edge import (
    ChartMode,
    ChartsSettings,
    GatewayScheme,
    GatewaySettings,
    ImagesSettings,
)
from srvmod.infra.settings.loading import load
from srvmod.infra.settings.monitoring import MonitoringSettings, PrometheusKind
from srvmod.infra.settings.prices import Price, PricesSettings
from srvmod.infra.settings.problems import Problem, SettingsError
from srvmod.infra.settings.pulumi_config import from_pulumi_config
from srvmod.infra.settings.serving import (
    EngineSettings,
    ModelSettings,
    PoolSettings,
    ReservationKind,
    ReservationSettings,
    SloSettings,
    TrafficSettings,
)
from srvmod.infra.settings.settings import Settings
from srvmod.infra.settings.sizing import Sizing
from srvmod.infra.settings.stackfile import load_stack_file

__all__ = [
    "AccessScope",
    "AdminSettings",
    "AwsSettings",
    "ChartMode",
    "ChartsSettings",
    "ClusterSettings",
    "EngineSettings",
    "ExistingNetwork",
    "GatewayScheme",
    "GatewaySettings",
    "ImagesSettings",
    "ModelSettings",
    "MonitoringSettings",
    "NatGateways",
    "NetworkSettings",
    "Partition",
    "PoolSettings",
    "Price",
    "PricesSettings",
    "Problem",
    "PrometheusKind",
    "ReservationKind",
    "ReservationSettings",
    "Settings",
    "SettingsError",
    "Sizing",
    "SloSettings",
    "SystemNodesSettings",
    "TrafficSettings",
    "from_pulumi_config",
    "load",
    "load_stack_file",
]
