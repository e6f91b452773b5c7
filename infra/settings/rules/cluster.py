"""Rules about the account and the cluster."""

import re
from collections.abc import Iterator

from srvmod.contract import P5_48XLARGE
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings

WIDEST_PREFIX = 8
SIMULATED_ACCOUNT = "123456789012"
"""The account that simulated AWS answers for; no company's."""
PRODUCTION = "prod"
YEAR_DAYS = 365
LONGEST_CLUSTER_NAME = 39
"""EventBridge rules have at most 64 characters, of which ours take up to 25; buckets 63, of which 21."""
CLUSTER_NAME = rf"[a-z](?:[a-z0-9-]{{0,{LONGEST_CLUSTER_NAME - 2}}}[a-z0-9])?"


def partition_of_region(s: Settings) -> Iterator[Finding]:
    """ARNs carry the partition that the region belongs to."""
    if s.aws.partition != _partition(s.aws.region):
        yield Finding(
            ("aws", "partition"), f"isn't the partition of {s.aws.region}", _partition(s.aws.region), s.aws.partition
        )


def _partition(region: str) -> str:
    return {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(region.rsplit("-", 2)[0], "aws")


def account_of_its_own(s: Settings) -> Iterator[Finding]:
    """The simulated account is used by simulated stacks and by no other."""
    if s.aws.simulated and s.aws.account_id != SIMULATED_ACCOUNT:
        yield Finding(("aws", "accountId"), "isn't the account of simulated AWS", f'"{SIMULATED_ACCOUNT}"')
    if not s.aws.simulated and s.aws.account_id == SIMULATED_ACCOUNT:
        yield Finding(("aws", "accountId"), "is the account of simulated AWS", "an account of the company")


def pods_reach_real_aws(s: Settings) -> Iterator[Finding]:
    """Weights and credentials never go to an address that isn't AWS's own."""
    if not s.aws.simulated and s.aws.pod_endpoint is not None:
        yield Finding(("aws", "podEndpoint"), "is for simulated AWS only", "no podEndpoint")
    if s.aws.simulated and s.aws.pod_endpoint is None:
        yield Finding(
            ("aws", "podEndpoint"),
            "is missing: pods of a simulated stack would ask real AWS for weights",
            "the address of simulated AWS as pods see it, such as http://10.88.0.1:5000",
        )


def names_fit(s: Settings) -> Iterator[Finding]:
    """Roles, rules and the bucket are named after the cluster; a bucket's name takes the fewest characters."""
    if not re.fullmatch(CLUSTER_NAME, s.cluster_name):
        yield Finding(
            ("cluster", "name"),
            "doesn't fit the names of roles, rules and the weights bucket that start with it",
            f"a lower-case letter, then at most {LONGEST_CLUSTER_NAME - 1} lower-case letters, digits or '-'; "
            "no '-' at the end",
            s.cluster_name,
        )


def public_endpoint_is_narrow(s: Settings) -> Iterator[Finding]:
    """A public API endpoint is open to named networks only."""
    public, networks = s.cluster.endpoint_public_access, s.cluster.endpoint_public_access_cidrs
    path = ("cluster", "endpointPublicAccessCidrs")
    if public and not networks:
        yield Finding(
            path,
            "cluster.endpointPublicAccess is true, so the networks that may use it must be named",
            "a list of networks such as [203.0.113.0/24]; never 0.0.0.0/0",
        )
    if networks and not public:
        yield Finding(path, "is given although cluster.endpointPublicAccess is false", "no list, or public access")
    for index, network in enumerate(networks):
        if network.prefixlen < WIDEST_PREFIX:
            yield Finding(
                (*path, index),
                "opens the Kubernetes API to (much of) the Internet",
                f"networks of /{WIDEST_PREFIX} or narrower; never 0.0.0.0/0",
            )


def private_endpoint_is_narrow(s: Settings) -> Iterator[Finding]:
    """The private API endpoint is open to named networks only."""
    for index, network in enumerate(s.cluster.endpoint_private_access_cidrs):
        if network.prefixlen < WIDEST_PREFIX:
            yield Finding(
                ("cluster", "endpointPrivateAccessCidrs", index),
                "opens the Kubernetes API to every network that is joined to the VPC",
                f"networks of /{WIDEST_PREFIX} or narrower, such as the runners' subnet; never 0.0.0.0/0",
            )


def somebody_can_enter(s: Settings) -> Iterator[Finding]:
    """The creator gets no access of its own, so a real cluster needs at least one admin."""
    if not s.aws.simulated and not any(admin.scope == "clusterAdmin" for admin in s.cluster.admins):
        yield Finding(
            ("cluster", "admins"),
            "names nobody with scope clusterAdmin: the Kubernetes API would be closed to everyone",
            "at least one entry such as {principalArn: arn:aws:iam::<account>:role/<name>}",
        )


def principals_differ(s: Settings) -> Iterator[Finding]:
    """EKS takes one access entry per principal."""
    seen: set[str] = set()
    for index, admin in enumerate(s.cluster.admins):
        if admin.principal_arn in seen:
            yield Finding(
                ("cluster", "admins", index, "principalArn"), "is listed twice", "each principal once, with one scope"
            )
        seen.add(admin.principal_arn)
    for index, arn in enumerate(s.cluster.plan_roles):
        if arn in seen:
            yield Finding(
                ("cluster", "planRoles", index),
                "is one of cluster.admins, too: EKS takes one access entry per principal",
                "a role of its own for plans, or no entry here (an admin may read everything)",
            )


def system_nodes(s: Settings) -> Iterator[Finding]:
    """Controllers need no GPUs."""
    nodes = s.cluster.system_nodes
    if nodes.instance_type.split(".")[0].startswith(("p", "g", "trn", "inf")):
        yield Finding(
            ("cluster", "systemNodes", "instanceType"),
            "has accelerators that controllers don't use",
            f"a general-purpose type such as m7i.xlarge; engines run on {P5_48XLARGE.name} of the pool",
        )


def production_is_protected(s: Settings) -> Iterator[Finding]:
    """Nobody deletes prod by mistake."""
    if s.stack == PRODUCTION and not s.cluster.deletion_protection:
        yield Finding(
            ("cluster", "deletionProtection"),
            "is off in prod",
            "true; turn it off in a change of its own before the cluster is to go",
            s.cluster.deletion_protection,
        )


def production_keeps_its_logs(s: Settings) -> Iterator[Finding]:
    """Who did what in prod can be told for a year (PCI DSS 4.0, 10.5.1)."""
    if s.stack == PRODUCTION and s.aws.log_retention_days < YEAR_DAYS:
        yield Finding(("aws", "logRetentionDays"), "is less than a year in prod", f"at least {YEAR_DAYS}")


def production_is_real(s: Settings) -> Iterator[Finding]:
    """A stack called prod serves people."""
    if s.stack == PRODUCTION and s.aws.simulated:
        yield Finding(("aws", "simulated"), "stack prod can't be simulated", "false")


RULES: tuple[Rule, ...] = (
    partition_of_region,
    account_of_its_own,
    names_fit,
    pods_reach_real_aws,
    public_endpoint_is_narrow,
    private_endpoint_is_narrow,
    somebody_can_enter,
    principals_differ,
    system_nodes,
    production_is_protected,
    production_is_real,
    production_keeps_its_logs,
)
