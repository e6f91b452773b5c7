"""What an environment costs: counts that the program decides, times prices that its settings give."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from srvmod.capacity import weight_bytes_per_gpu
from srvmod.contract import GB
from srvmod.infra.aws.network import interface_endpoints
from srvmod.infra.aws.system_nodes import SystemNodes
from srvmod.infra.platform.documents.pool import ROOT_VOLUME_GIB
from srvmod.infra.settings import NatGateways, Price, Settings

HOURS_PER_MONTH = 730
"""A twelfth of a year of 365 days."""
NOT_COUNTED = (
    "data through NAT gateways, endpoints, load balancers and between zones",
    "logs (control plane, flow logs), metrics, KMS and S3 requests",
    "IOPS and throughput of root volumes above gp3's own",
    "support plans, taxes, the company's own monitoring",
)
"""What depends on traffic or on contracts and is therefore in no line."""


@dataclass(frozen=True)
class Line:
    """One kind of thing. `units` are billed per hour when `hourly`, else per month."""

    what: str
    key: str
    """Setting that holds the price, below `prices`."""
    units: float
    hourly: bool
    price: Price | None

    @property
    def usd_per_hour(self) -> float | None:
        """Cost per hour; None without a price."""
        if self.price is None:
            return None
        cost = self.units * self.price.usd
        return cost if self.hourly else cost / HOURS_PER_MONTH

    @property
    def usd_per_month(self) -> float | None:
        """Cost per month of HOURS_PER_MONTH hours; None without a price."""
        hourly = self.usd_per_hour
        return None if hourly is None else hourly * HOURS_PER_MONTH


@dataclass(frozen=True)
class Picture:
    """The cost of an environment with its fewest engines, and with its most."""

    environment: str
    region: str
    nodes: int
    most_nodes: int
    lines: Sequence[Line]
    most_usd_per_hour: float | None
    """With the most nodes that the scaler may run; None without a price of a node."""
    tokens_per_second: float
    """Predicted output of the fewest engines at peak traffic."""
    load: float
    """Mean traffic as a share of the peak, over all hours."""

    @property
    def usd_per_hour(self) -> float:
        """Sum of the lines that have a price."""
        return sum(line.usd_per_hour or 0.0 for line in self.lines)

    @property
    def usd_per_month(self) -> float:
        """The same per month."""
        return self.usd_per_hour * HOURS_PER_MONTH

    @property
    def missing(self) -> list[str]:
        """Settings of the prices that aren't given and would be more than nothing."""
        return [f"prices.{line.key}" for line in self.lines if line.price is None and line.units]

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Per million output tokens at `load`; None while the price of a node is missing: the rest says little."""
        gpu = self.lines[0]
        if gpu.price is None or self.tokens_per_second <= 0:
            return None
        return self.usd_per_hour / (self.tokens_per_second * self.load * 3600 / 1e6)


def picture(settings: Settings, load: float = 1.0) -> Picture:
    """The cost of a stack. `load` is mean traffic as a share of the peak, more than 0 and at most 1 (ValueError)."""
    if not 0 < load <= 1:
        raise ValueError(f"load = {load}; allowed: more than 0, at most 1")
    sizing = settings.sizing
    lines = list(_lines(settings))
    per_node = (lines[0].usd_per_hour or 0.0) / lines[0].units
    total = sum(line.usd_per_hour or 0.0 for line in lines)
    more = sizing.max_nodes - sizing.min_nodes
    return Picture(
        environment=settings.stack,
        region=settings.aws.region,
        nodes=sizing.min_nodes,
        most_nodes=sizing.max_nodes,
        lines=lines,
        most_usd_per_hour=total + more * per_node if settings.prices.gpu_node else None,
        tokens_per_second=sizing.prediction.tokens_per_second * sizing.min_engines,
        load=load,
    )


def _lines(settings: Settings) -> Iterator[Line]:
    """Nodes of engines first."""
    prices, network, system = settings.prices, settings.network, settings.cluster.system_nodes
    nodes = settings.sizing.min_nodes
    yield Line(f"{settings.pool.instance_type}, fewest engines", "gpuNode", nodes, True, prices.gpu_node)
    yield Line(f"system nodes, {system.instance_type}", "systemNode", system.count, True, prices.system_node)
    yield Line("EKS control plane", "cluster", 1, True, prices.cluster)
    if network.existing is None:
        gateways = {NatGateways.PER_ZONE: len(network.zones), NatGateways.SINGLE: 1, NatGateways.NONE: 0}
        yield Line("NAT gateways", "natGateway", gateways[network.nat_gateways], True, prices.nat_gateway)
        endpoints = len(interface_endpoints(settings)) * len(network.zones)
        yield Line("interface endpoints in zones", "interfaceEndpoint", endpoints, True, prices.interface_endpoint)
    yield Line("load balancer", "loadBalancer", 1, True, prices.load_balancer)
    disks = nodes * ROOT_VOLUME_GIB + system.count * SystemNodes.disk_gib
    yield Line("root volumes, GiB", "volumeGibMonth", disks, False, prices.volume_gib_month)
    layout = settings.plan.layout
    weights = weight_bytes_per_gpu(settings.model_shape, layout) * layout.tensor_parallel_size / GB
    yield Line("weights of one revision, GB", "bucketGbMonth", round(weights, 1), False, prices.bucket_gb_month)
