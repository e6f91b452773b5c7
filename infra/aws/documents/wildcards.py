"""The actions that are allowed on every resource, and why: nothing else ever gets `Resource: *`.

A test compares the list with AWS's service authorization reference: no action is in it that can be narrowed.
"""

from collections.abc import Mapping, Sequence

from srvmod.infra.aws.documents.statements import Statement, allow

EC2_DESCRIBES = (
    "AccountAttributes",
    "Addresses",
    "AvailabilityZones",
    "CapacityReservations",
    "Images",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "Instances",
    "InternetGateways",
    "LaunchTemplates",
    "NetworkInterfaces",
    "RouteTables",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
    "Tags",
    "VpcPeeringConnections",
    "Vpcs",
)
BALANCER_DESCRIBES = (
    "CapacityReservation",
    "ListenerAttributes",
    "ListenerCertificates",
    "Listeners",
    "LoadBalancerAttributes",
    "LoadBalancers",
    "Rules",
    "SSLPolicies",
    "Tags",
    "TargetGroupAttributes",
    "TargetGroups",
    "TargetHealth",
    "TrustStores",
)

REASONS: Mapping[str, str] = {
    **{f"ec2:Describe{thing}": "EC2 has no resource-level permission for it" for thing in EC2_DESCRIBES},
    **{
        f"elasticloadbalancing:Describe{thing}": "Elastic Load Balancing has no resource-level permission for it"
        for thing in BALANCER_DESCRIBES
    },
    "acm:ListCertificates": "it lists the account's certificates: names and domains, no keys",
    "iam:ListInstanceProfiles": "IAM has no resource-level permission for it; Karpenter looks for profiles to remove",
    "pricing:GetProducts": "the public price list is nobody's resource",
    "logs:DescribeLogGroups": "the flow log's delivery looks its group up by a list",
}
"""Action → why it can't be narrowed to resources."""

NOT_REGIONAL = frozenset({"iam:ListInstanceProfiles", "pricing:GetProducts"})
"""Actions whose service answers in one region for all; the others are bound to the stack's region."""


def allow_everywhere(sid: str, actions: Sequence[str], region: str) -> Statement:
    """An Allow statement on `*`. Raises ValueError for an action without a reason in this module."""
    if unreasoned := sorted(set(actions) - set(REASONS)):
        raise ValueError(f"{sid}: {', '.join(unreasoned)} on every resource; fix: name resources, or a reason here")
    if NOT_REGIONAL & set(actions):
        return allow(sid, actions, ["*"])
    return allow(sid, actions, ["*"], conditions={"StringEquals": {"aws:RequestedRegion": region}})
