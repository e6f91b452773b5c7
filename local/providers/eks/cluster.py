"""`eks.Cluster` of pulumi-eks 4.4: the cluster resource, its role where none is given, and a kubeconfig.

Only the configuration without pulumi-eks's own node groups, add-ons and security groups is here. Any other argument
or value is an error, since the real component would make resources that this one doesn't.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
from pulumi import Input, Output, ResourceOptions

TYPE = "eks:index:Cluster"
TOKEN_COMMAND = Path(__file__).resolve().parent.parent / "bin" / "eks-token"
CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Principal": {"Service": "eks.amazonaws.com"},
        }
    ],
}

HANDLED = frozenset({
    "name", "version", "vpcId", "subnetIds", "privateSubnetIds", "publicSubnetIds", "serviceRole", "accessEntries",
    "authenticationMode", "endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs",
    "encryptionConfigKeyArn", "enabledClusterLogTypes", "deletionProtection", "upgradePolicy", "tags", "clusterTags",
    "kubernetesServiceIpAddressRange", "ipFamily", "bootstrapSelfManagedAddons",
})  # fmt: skip
CREATOR = "bootstrapClusterCreatorAdminPermissions"
IGNORED = [f"accessConfig.{CREATOR}", "bootstrapSelfManagedAddons"]
"""Properties of the cluster whose changes pulumi-eks ignores: they are for its creation only."""
FIXED: Mapping[str, Any] = {
    # without these the real component makes node groups, security groups, add-ons or an OIDC provider
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "createOidcProvider": False,
    "useDefaultVpcCni": True,
}
SWITCHED_OFF = frozenset({"kubeProxyAddonOptions", "corednsAddonOptions"})
"""Blocks whose `enabled` must be false."""
_DEFAULTS: Mapping[str, Any] = {"createOidcProvider": False}


class UnhandledArgument(Exception):  # noqa: N818 - it is the program's argument, not ours
    """An argument, or a value of one, that this stand-in doesn't have."""


class Raw(pulumi.CustomResource):
    """A resource by type token: the SDK of pulumi-aws isn't needed (importing it takes seconds)."""

    def __init__(
        self, kind: str, name: str, props: dict[str, Any], outputs: tuple[str, ...], opts: ResourceOptions | None
    ) -> None:
        super().__init__(kind, name, {**props, **dict.fromkeys(outputs)}, opts)

    def output(self, name: str) -> Output[Any]:
        """An output by its wire name."""
        found: Output[Any] = self.__dict__[name]
        return found


@dataclass(frozen=True)
class Made:
    """The component and what it gives back, by wire names."""

    component: pulumi.ComponentResource
    outputs: dict[str, Input[Any]]


def check(inputs: Mapping[str, Any]) -> None:
    """UnhandledArgument for the first argument that isn't in HANDLED, or that differs from FIXED."""
    for name, value in sorted(inputs.items()):
        if name in FIXED:
            if value != FIXED[name]:
                raise UnhandledArgument(f"{name}={value!r}: the simulated eks.Cluster only has {FIXED[name]!r}")
        elif name in SWITCHED_OFF:
            if not isinstance(value, Mapping) or value.get("enabled") is not False:
                raise UnhandledArgument(f"{name}={value!r}: the simulated eks.Cluster only has enabled=False")
        elif name not in HANDLED:
            raise UnhandledArgument(f"{name} isn't handled by the simulated eks.Cluster ({', '.join(sorted(HANDLED))})")
    for name in sorted({*FIXED, *SWITCHED_OFF} - set(_DEFAULTS) - set(inputs)):
        only = FIXED.get(name, "enabled=False")
        raise UnhandledArgument(f"{name} must be given: the simulated eks.Cluster has only {only}")


def kubeconfig(name: str, endpoint: str, authority: str) -> dict[str, Any]:
    """As `aws eks update-kubeconfig` writes it, with this stand-in's token command in place of aws's. No secret."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "kubernetes", "cluster": {"server": endpoint, "certificate-authority-data": authority}},
        ],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "current-context": "aws",
        "users": [
            {
                "name": "aws",
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": str(TOKEN_COMMAND),
                        "args": ["--cluster-name", name],
                        "interactiveMode": "Never",
                    }
                },
            }
        ],
    }


def make(name: str, inputs: Mapping[str, Input[Any]], opts: ResourceOptions | None) -> Made:
    """Register the component and its children."""
    check(inputs)
    component = pulumi.ComponentResource(TYPE, name, {}, opts)
    child = ResourceOptions(parent=component)
    cluster = Raw(
        "aws:eks/cluster:Cluster",
        f"{name}-eksCluster",
        _cluster_props(name, inputs, _role_arn(name, inputs, child)),
        ("arn", "certificateAuthority", "endpoint", "identities", "id_", "status"),
        ResourceOptions(parent=component, ignore_changes=IGNORED),
    )
    entries: Any = inputs.get("accessEntries") or {}
    for key, entry in entries.items():
        _access_entry(f"{name}-{key}", cluster, entry, child)
    vpc = cluster.output("vpcConfig")
    config = Output.all(cluster.output("name"), cluster.output("endpoint"), cluster.output("certificateAuthority"))
    document = config.apply(lambda known: kubeconfig(known[0], known[1], known[2]["data"]))
    issuer = cluster.output("identities").apply(lambda found: found[0]["oidcs"][0]["issuer"])
    outputs: dict[str, Input[Any]] = {
        "eksCluster": cluster,
        "kubeconfig": document,
        "kubeconfigJson": document.apply(lambda found: json.dumps(found, sort_keys=True)),
        "clusterSecurityGroupId": vpc.apply(lambda found: found["clusterSecurityGroupId"]),
        "nodeSecurityGroupId": vpc.apply(lambda found: found["clusterSecurityGroupId"]),
        "oidcIssuer": issuer.apply(lambda found: found.removeprefix("https://")),
        "oidcProviderUrl": issuer,
        "instanceRoles": [],
    }
    component.register_outputs(outputs)
    return Made(component, outputs)


def _role_arn(name: str, inputs: Mapping[str, Input[Any]], child: ResourceOptions) -> Input[str]:
    given = inputs.get("serviceRole")
    if isinstance(given, Raw):
        return given.output("arn")
    if given is not None:
        raise UnhandledArgument(f"serviceRole must be a resource aws.iam.Role, not {given!r}")
    role = Raw("aws:iam/role:Role", f"{name}-eksRole-role", {"assumeRolePolicy": json.dumps(_TRUST)}, ("arn",), child)
    attachment = {"role": role.id, "policyArn": CLUSTER_POLICY}
    policy = Raw("aws:iam/rolePolicyAttachment:RolePolicyAttachment", f"{name}-eksRole-policy", attachment, (), child)
    arn: Output[str] = Output.all(role.output("arn"), policy.id).apply(lambda known: known[0])
    return arn


def _cluster_props(name: str, inputs: Mapping[str, Input[Any]], role: Input[str]) -> dict[str, Any]:
    def listed(key: str) -> Input[Any]:
        return inputs.get(key) or []

    subnets = Output.all(listed("subnetIds"), listed("privateSubnetIds"), listed("publicSubnetIds")).apply(
        lambda groups: [subnet for group in groups for subnet in group]
    )
    tags = Output.all(inputs.get("tags") or {}, inputs.get("clusterTags") or {}).apply(
        lambda both: {"Name": f"{name}-eksCluster", **both[0], **both[1]}
    )
    network = _given(serviceIpv4Cidr=inputs.get("kubernetesServiceIpAddressRange"), ipFamily=inputs.get("ipFamily"))
    mode, key = inputs.get("authenticationMode"), inputs.get("encryptionConfigKeyArn")
    return _given(
        name=inputs.get("name"),
        roleArn=role,
        version=inputs.get("version"),
        vpcConfig=_given(
            subnetIds=subnets,
            endpointPrivateAccess=inputs.get("endpointPrivateAccess"),
            endpointPublicAccess=inputs.get("endpointPublicAccess"),
            publicAccessCidrs=inputs.get("publicAccessCidrs"),
            vpcId=None,
        ),
        # pulumi-eks admits the creator as soon as a mode is given, and has no argument that says otherwise
        accessConfig={"authenticationMode": mode, CREATOR: True} if mode is not None else None,
        encryptionConfig={"provider": {"keyArn": key}, "resources": ["secrets"]} if key is not None else None,
        enabledClusterLogTypes=inputs.get("enabledClusterLogTypes"),
        deletionProtection=inputs.get("deletionProtection"),
        upgradePolicy=inputs.get("upgradePolicy"),
        bootstrapSelfManagedAddons=inputs.get("bootstrapSelfManagedAddons"),
        kubernetesNetworkConfig=network or None,
        tags=tags,
    )


def _access_entry(name: str, cluster: Raw, entry: Mapping[str, Any], child: ResourceOptions) -> None:
    known = {"principalArn", "type", "kubernetesGroups", "tags", "username", "accessPolicies"}
    if other := sorted(set(entry) - known):
        raise UnhandledArgument(f"accessEntries: {', '.join(other)} isn't handled by the simulated eks.Cluster")
    made = Raw(
        "aws:eks/accessEntry:AccessEntry",
        name,
        _given(
            clusterName=cluster.output("name"),
            principalArn=entry["principalArn"],
            type=entry.get("type"),
            kubernetesGroups=entry.get("kubernetesGroups"),
            userName=entry.get("username"),
            tags=entry.get("tags"),
        ),
        (),
        child,
    )
    for key, policy in dict(entry.get("accessPolicies", {})).items():
        Raw(
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
            f"{name}-{key}",
            {
                "clusterName": cluster.output("name"),
                "principalArn": made.output("principalArn"),
                "policyArn": policy["policyArn"],
                "accessScope": policy["accessScope"],
            },
            (),
            child,
        )


def _given(**values: Any) -> dict[str, Any]:
    """Only what is set: a property that isn't given stays absent."""
    return {k: v for k, v in values.items() if v is not None}
