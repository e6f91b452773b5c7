"""The VPC that everything lives in: made here, or an existing one by ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.flow_logs import FlowLogs, FlowLogsArgs
from srvmod.infra.aws.names import DISCOVERY_TAG, VPC, Account, Names
from srvmod.infra.settings import NatGateways, PrometheusKind, Settings

EVERYWHERE = "0.0.0.0/0"
HTTPS = 443

INTERFACE_ENDPOINTS = (
    "ecr.api",
    "ecr.dkr",
    "sts",
    "ec2",
    "sqs",
    "eks",
    "eks-auth",
    "ssm",
    "kms",
    "elasticloadbalancing",
    "logs",
)
"""Services that nodes, Karpenter, the pod identity agent and the load balancer controller call."""


def interface_endpoints(settings: Settings) -> tuple[str, ...]:
    """Services that the VPC has an endpoint for. Without NAT there is no other way: then also for Session Manager,
    by which people reach a private API, and for what Prometheus, KEDA and Alertmanager call."""
    if settings.network.nat_gateways is not NatGateways.NONE:
        return INTERFACE_ENDPOINTS
    monitoring = settings.monitoring
    metrics = ("aps-workspaces",) if monitoring.prometheus is PrometheusKind.AMAZON else ()
    alerts = ("sns",) if monitoring.alert_topic_arn else ()
    return (*INTERFACE_ENDPOINTS, "ssmmessages", *metrics, *alerts)


@dataclass(frozen=True)
class Zone:
    """One availability zone with its two subnets (CIDRs)."""

    name: str
    private_cidr: str
    public_cidr: str


@dataclass(frozen=True)
class NewNetwork:
    """A VPC of our own. `protect` refuses changes that would replace it or the nodes' subnets."""

    cidr: str
    zones: Sequence[Zone]
    nat: NatGateways = NatGateways.PER_ZONE
    endpoints: Sequence[str] = INTERFACE_ENDPOINTS
    flow_logs: bool = True
    protect: bool = False


@dataclass(frozen=True)
class ExistingNetwork:
    """A VPC that somebody else keeps. Its private subnets get the discovery tag and nothing else."""

    vpc_id: str
    private_subnet_ids: Sequence[str]


@dataclass(frozen=True)
class NetworkArgs:
    """`network` says whether the VPC is made or taken; the key encrypts its flow logs."""

    names: Names
    account: Account
    network: NewNetwork | ExistingNetwork
    log_key_arn: pulumi.Input[str]
    log_retention_days: int


class Network(pulumi.ComponentResource):
    """VPC, subnets and the ways out of them.

    Nodes live in private subnets and get no public address; private subnets carry the discovery tag that
    Karpenter selects by and the role tag that load balancer controllers read.
    """

    vpc_id: pulumi.Output[str]
    private_subnet_ids: pulumi.Output[Sequence[str]]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:Network", name, None, opts)
        self._name = name
        self._args = args
        self._child = pulumi.ResourceOptions(parent=self)
        if isinstance(args.network, ExistingNetwork):
            self._adopt(args.network)
        else:
            self._create(args.network)
        self.register_outputs({"vpcId": self.vpc_id, "privateSubnetIds": self.private_subnet_ids})

    def _adopt(self, network: ExistingNetwork) -> None:
        for index, subnet in enumerate(network.private_subnet_ids):
            aws.ec2.Tag(
                f"{self._name}-discovery-{index}",
                resource_id=subnet,
                key=DISCOVERY_TAG,
                value=self._args.names.discovery_tags()[DISCOVERY_TAG],
                opts=self._child,
            )
        self.vpc_id = pulumi.Output.from_input(network.vpc_id)
        self.private_subnet_ids = pulumi.Output.from_input(list(network.private_subnet_ids))

    def _create(self, network: NewNetwork) -> None:
        name, tags = self._name, self._args.names.tags
        vpc = aws.ec2.Vpc(
            name,
            cidr_block=network.cidr,
            enable_dns_hostnames=True,  # private endpoints resolve through it
            enable_dns_support=True,
            tags=tags(VPC),
            opts=pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(protect=network.protect)),
        )
        # Every VPC has a group that lets all its members talk; nothing is in it, and now it lets nothing through.
        aws.ec2.DefaultSecurityGroup(name, vpc_id=vpc.id, tags=tags("default"), opts=self._child)
        private = [self._subnet(vpc, zone, network, public=False) for zone in network.zones]
        public = (
            []
            if network.nat is NatGateways.NONE
            else [self._subnet(vpc, zone, network, public=True) for zone in network.zones]
        )
        gateways = self._public_side(vpc, network, public) if public else []
        tables = []
        for index, (zone, subnet) in enumerate(zip(network.zones, private, strict=True)):
            table = self._route_table(vpc, f"private-{zone.name}", subnet)
            tables.append(table)
            if gateways:
                aws.ec2.Route(
                    f"{name}-private-{zone.name}-nat",
                    route_table_id=table.id,
                    destination_cidr_block=EVERYWHERE,
                    nat_gateway_id=gateways[min(index, len(gateways) - 1)].id,
                    opts=self._child,
                )
        self._endpoints(vpc, network, private, tables)
        if network.flow_logs:
            args = self._args
            FlowLogs(
                f"{name}-flows",
                FlowLogsArgs(args.names, args.account, vpc.id, args.log_key_arn, args.log_retention_days),
                self._child,
            )
        self.vpc_id = vpc.id
        self.private_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in private])

    def _subnet(self, vpc: aws.ec2.Vpc, zone: Zone, network: NewNetwork, *, public: bool) -> aws.ec2.Subnet:
        names = self._args.names
        side = "public" if public else "private"
        role = {"kubernetes.io/role/elb": "1"} if public else {"kubernetes.io/role/internal-elb": "1"}
        more = role if public else {**role, **names.discovery_tags()}
        return aws.ec2.Subnet(
            f"{self._name}-{side}-{zone.name}",
            vpc_id=vpc.id,
            cidr_block=zone.public_cidr if public else zone.private_cidr,
            availability_zone=zone.name,
            map_public_ip_on_launch=False,
            tags=names.tags(f"{side}-{zone.name}", more),
            # The public side comes and goes with `natGateways`.
            opts=pulumi.ResourceOptions.merge(
                self._child, pulumi.ResourceOptions(protect=network.protect and not public)
            ),
        )

    def _route_table(self, vpc: aws.ec2.Vpc, part: str, subnet: aws.ec2.Subnet) -> aws.ec2.RouteTable:
        table = aws.ec2.RouteTable(
            f"{self._name}-{part}", vpc_id=vpc.id, tags=self._args.names.tags(part), opts=self._child
        )
        aws.ec2.RouteTableAssociation(
            f"{self._name}-{part}", route_table_id=table.id, subnet_id=subnet.id, opts=self._child
        )
        return table

    def _public_side(
        self, vpc: aws.ec2.Vpc, network: NewNetwork, subnets: Sequence[aws.ec2.Subnet]
    ) -> list[aws.ec2.NatGateway]:
        name, tags = self._name, self._args.names.tags
        internet = aws.ec2.InternetGateway(name, vpc_id=vpc.id, tags=tags("internet"), opts=self._child)
        gateways: list[aws.ec2.NatGateway] = []
        for index, (zone, subnet) in enumerate(zip(network.zones, subnets, strict=True)):
            table = self._route_table(vpc, f"public-{zone.name}", subnet)
            route = aws.ec2.Route(
                f"{name}-public-{zone.name}-internet",
                route_table_id=table.id,
                destination_cidr_block=EVERYWHERE,
                gateway_id=internet.id,
                opts=self._child,
            )
            if index > 0 and network.nat is NatGateways.SINGLE:
                continue
            part = f"nat-{zone.name}"
            address = aws.ec2.Eip(f"{name}-{part}", domain="vpc", tags=tags(part), opts=self._child)
            gateways.append(
                aws.ec2.NatGateway(
                    f"{name}-{part}",
                    allocation_id=address.id,
                    subnet_id=subnet.id,
                    tags=tags(part),
                    # Without its route the gateway comes up unable to reach anything.
                    opts=pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=[route])),
                )
            )
        return gateways

    def _endpoints(
        self,
        vpc: aws.ec2.Vpc,
        network: NewNetwork,
        subnets: Sequence[aws.ec2.Subnet],
        tables: Sequence[aws.ec2.RouteTable],
    ) -> None:
        name, names, region = self._name, self._args.names, self._args.account.region
        group = aws.ec2.SecurityGroup(
            f"{name}-endpoints",
            name=names.of("endpoints"),
            description="HTTPS from the VPC to AWS services",
            vpc_id=vpc.id,
            tags=names.tags("endpoints"),
            opts=self._child,
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-endpoints-https",
            security_group_id=group.id,
            description="HTTPS from the VPC",
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            cidr_ipv4=network.cidr,
            tags=names.tags("endpoints-https"),
            opts=self._child,
        )
        aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            tags=names.tags("s3"),
            opts=self._child,
        )
        for service in network.endpoints:
            part = service.replace(".", "-")
            aws.ec2.VpcEndpoint(
                f"{name}-{part}",
                vpc_id=vpc.id,
                service_name=f"com.amazonaws.{region}.{service}",
                vpc_endpoint_type="Interface",
                subnet_ids=[subnet.id for subnet in subnets],
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags=names.tags(part),
                opts=self._child,
            )
