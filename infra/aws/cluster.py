"""The EKS cluster: control plane, system nodes, add-ons and who may enter."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as k8s

from srvmod.infra import versions
from srvmod.infra.aws.access import AccessArgs, entries, without_hidden_admin
from srvmod.infra.aws.documents import trust
from srvmod.infra.aws.encryption_key import EncryptionKey, EncryptionKeyArgs
from srvmod.infra.aws.names import DISCOVERY_TAG, Account, Names
from srvmod.infra.aws.role import Role, RoleArgs
from srvmod.infra.aws.system_nodes import SystemNodeGroup, SystemNodeGroupArgs, SystemNodes
from srvmod.infra.settings import AdminSettings

HTTPS = 443
LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")

BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Nodes become Ready only with these; the others need a node to run on."""

ADDON_CONFIGURATION: Mapping[str, Mapping[str, Any]] = {
    # NetworkPolicy objects are silently ignored unless the agent is switched on.
    "vpc-cni": {"enableNetworkPolicy": "true"},
    # Without tolerations its DCGM host engine is absent from tainted GPU nodes, which the agent reports as a
    # fatal DCGMError: node repair would then terminate healthy p5s.
    "eks-node-monitoring-agent": {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}},
}

NODE_POLICIES = {
    "worker": "AmazonEKSWorkerNodePolicy",
    "cni": "AmazonEKS_CNI_Policy",
    "registry": "AmazonEC2ContainerRegistryPullOnly",
    "ssm": "AmazonSSMManagedInstanceCore",
}
"""What any node's role needs, by a short key."""


@dataclass(frozen=True)
class ClusterArgs:
    """`public_access_cidrs` empty means that the API endpoint is private; `private_access_cidrs` are networks that may
    reach it beside the cluster's own nodes; `service_cidr` holds the addresses of Services."""

    names: Names
    account: Account
    vpc_id: pulumi.Input[str]
    private_subnet_ids: pulumi.Input[Sequence[str]]
    version: str
    service_cidr: str
    system_nodes: SystemNodes
    log_key_arn: pulumi.Input[str]
    log_retention_days: int
    public_access_cidrs: Sequence[str] = ()
    private_access_cidrs: Sequence[str] = ()
    admins: Sequence[AdminSettings] = ()
    plan_roles: Sequence[str] = ()
    deletion_protection: bool = True
    addons: Sequence[versions.Addon] = versions.ADDONS


class Cluster(pulumi.ComponentResource):
    """An EKS cluster whose pods get their rights by pod identity and whose people get theirs by access entries.

    One security group, the one that EKS itself makes, joins control plane, system nodes and Karpenter's nodes:
    pulumi-eks's own node group would cut Karpenter's nodes off from CoreDNS on the system nodes.
    """

    name: str
    eks_name: pulumi.Output[str]
    """The same as `name`, known when the cluster exists: for what must not exist before it."""
    arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:Cluster", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.name = args.names.cluster
        control_plane = self._control_plane()
        self.eks_name = control_plane.eks_cluster.name
        self.arn = control_plane.eks_cluster.arn
        self.endpoint = control_plane.eks_cluster.endpoint
        self.security_group_id = control_plane.cluster_security_group_id
        self.kubeconfig = control_plane.kubeconfig_json
        aws.ec2.Tag(
            f"{name}-discovery",
            resource_id=self.security_group_id,
            key=DISCOVERY_TAG,
            value=args.names.discovery_tags()[DISCOVERY_TAG],
            opts=self._child,
        )
        access = AccessArgs(args.names, args.account, self.eks_name, args.admins, args.plan_roles)
        # Whoever deploys needs both for every object inside: to make it, and to take it away again.
        entered = [*entries(name, access, self._child), *self._ways_in()]
        nodes = self._nodes(control_plane)
        self.kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # Otherwise a changed kubeconfig (a new exec command, say) replaces every object in the cluster.
            cluster_identifier=self.name,
            enable_server_side_apply=True,
            # Otherwise a rotated key, or a changed script, deletes its object before it makes the new one: for that
            # moment the gateway would know no key.
            enable_secret_mutable=True,
            enable_config_map_mutable=True,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*nodes, *entered]),
        )
        self.register_outputs(
            {
                "name": self.name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "securityGroupId": self.security_group_id,
            }
        )

    def _control_plane(self) -> eks.Cluster:
        name, args = self._name, self._args
        key = EncryptionKey(f"{name}-secrets", EncryptionKeyArgs(args.names, args.account, "secrets"), self._child)
        role = Role(
            f"{name}-control-plane",
            RoleArgs(
                args.names,
                "control-plane",
                "EKS control plane",
                trust.service("eks.amazonaws.com"),
                managed={"cluster": args.account.managed_policy("AmazonEKSClusterPolicy")},
            ),
            self._child,
        )
        # Before the cluster: EKS would make the group itself, kept for ever and under no key of ours.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-control-plane",
            name=args.names.control_plane_log_group,
            retention_in_days=args.log_retention_days,
            kms_key_id=args.log_key_arn,
            tags=args.names.tags("control-plane-logs"),
            opts=pulumi.ResourceOptions(parent=self, protect=args.deletion_protection),
        )
        return eks.Cluster(
            name,
            name=args.names.cluster,
            version=args.version,
            vpc_id=args.vpc_id,
            private_subnet_ids=args.private_subnet_ids,
            service_role=role.resource,
            skip_default_node_group=True,
            skip_default_security_groups=True,
            create_oidc_provider=False,
            authentication_mode=eks.AuthenticationMode.API,
            kubernetes_service_ip_address_range=args.service_cidr,
            endpoint_private_access=True,
            endpoint_public_access=bool(args.public_access_cidrs),
            public_access_cidrs=list(args.public_access_cidrs) or None,
            encryption_config_key_arn=key.arn,
            enabled_cluster_log_types=list(LOG_TYPES),
            deletion_protection=args.deletion_protection,
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            # Add-ons are ours, below, with pinned versions: none twice.
            bootstrap_self_managed_addons=False,
            use_default_vpc_cni=True,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            tags=args.names.tags("cluster"),
            # EKS refuses to delete a protected cluster only after everything inside is gone; the engine refuses first.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[logs, *role.attachments],
                protect=args.deletion_protection,
                transforms=[without_hidden_admin],
            ),
        )

    def _ways_in(self) -> list[pulumi.Resource]:
        """A rule per network that may reach the private API endpoint. The group is the nodes' as well: it opens their
        port 443, too, on which nothing of ours listens."""
        args = self._args
        return [
            aws.vpc.SecurityGroupIngressRule(
                f"{self._name}-api-{cidr.replace('/', '-')}",
                security_group_id=self.security_group_id,
                description="Kubernetes API from a network that settings name",
                ip_protocol="tcp",
                from_port=HTTPS,
                to_port=HTTPS,
                cidr_ipv4=cidr,
                tags=args.names.tags("api-access"),
                opts=self._child,
            )
            for cidr in args.private_access_cidrs
        ]

    def _nodes(self, control_plane: eks.Cluster) -> list[pulumi.Resource]:
        """Add-ons that nodes need, the system nodes, then the add-ons that need nodes; returns all of them."""
        name, args = self._name, self._args
        role = Role(
            f"{name}-system-node",
            RoleArgs(
                args.names,
                "system-node",
                "System nodes",
                trust.service("ec2.amazonaws.com"),
                managed={key: args.account.managed_policy(policy) for key, policy in NODE_POLICIES.items()},
            ),
            self._child,
        )
        early = [self._addon(control_plane, addon, []) for addon in args.addons if addon.name in BEFORE_NODES]
        nodes = SystemNodeGroup(
            f"{name}-system",
            SystemNodeGroupArgs(
                args.names,
                control_plane.eks_cluster.name,
                args.private_subnet_ids,
                role.arn,
                args.version,
                args.system_nodes,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[*early, *role.attachments]),
        )
        group = nodes.group
        late = [self._addon(control_plane, addon, [group]) for addon in args.addons if addon.name not in BEFORE_NODES]
        return [*early, group, *late]

    def _addon(
        self, control_plane: eks.Cluster, addon: versions.Addon, after: Sequence[pulumi.Resource]
    ) -> aws.eks.Addon:
        configuration = ADDON_CONFIGURATION.get(addon.name)
        return aws.eks.Addon(
            f"{self._name}-{addon.name}",
            cluster_name=control_plane.eks_cluster.name,
            addon_name=addon.name,
            addon_version=addon.version,
            configuration_values=json.dumps(configuration, sort_keys=True) if configuration else None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=self._args.names.tags(addon.name),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )
