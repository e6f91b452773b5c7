"""The policy of the AWS Load Balancer Controller, for Network Load Balancers of one cluster.

Source: docs/install/iam_policy.json of aws-load-balancer-controller, without ALB's web firewalls, Shield and
Cognito, and with the cluster's own tag where that one takes any cluster's.
"""

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.documents.wildcards import BALANCER_DESCRIBES, allow_everywhere
from srvmod.infra.aws.names import Account

OWNER_TAG = "elbv2.k8s.aws/cluster"
"""The tag that the controller puts on what it makes."""
SERVICE = "elasticloadbalancing"
EC2_READS = (
    "AccountAttributes",
    "Addresses",
    "AvailabilityZones",
    "Instances",
    "InternetGateways",
    "NetworkInterfaces",
    "RouteTables",
    "SecurityGroups",
    "Subnets",
    "Tags",
    "VpcPeeringConnections",
    "Vpcs",
)


def reads(account: Account) -> Document:
    """What the controller looks at; only a VPC's groups and a certificate can be named as resources."""
    return document(
        allow_everywhere(
            "DescribeInRegion",
            [
                *(f"ec2:Describe{thing}" for thing in EC2_READS),
                *(f"{SERVICE}:Describe{thing}" for thing in BALANCER_DESCRIBES),
                "acm:ListCertificates",
            ],
            account.region,
        ),
        allow("GroupsOfVpc", ["ec2:GetSecurityGroupsForVpc"], [account.arn("ec2", "vpc/*")]),
        allow("ReadCertificates", ["acm:DescribeCertificate"], [account.arn("acm", "certificate/*")]),
    )


def security_groups(account: Account, cluster: str) -> Document:
    """Make the load balancers' own security groups, and open the nodes' group to them."""
    groups = [account.arn("ec2", "security-group/*")]
    rules = ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"]
    requested = {"StringEquals": {f"aws:RequestTag/{OWNER_TAG}": cluster}}
    own = {"StringEquals": {f"aws:ResourceTag/{OWNER_TAG}": cluster}}
    return document(
        allow("CreateInVpc", ["ec2:CreateSecurityGroup"], [account.arn("ec2", "vpc/*")]),
        allow("CreateWithTag", ["ec2:CreateSecurityGroup"], groups, conditions=requested),
        allow(
            "TagOnCreation",
            ["ec2:CreateTags"],
            groups,
            conditions={"StringEquals": {**requested["StringEquals"], "ec2:CreateAction": "CreateSecurityGroup"}},
        ),
        allow(
            "ChangeOwn",
            [*rules, "ec2:DeleteSecurityGroup", "ec2:CreateTags", "ec2:DeleteTags"],
            groups,
            conditions=own,
        ),
        allow(
            "OpenNodes",
            rules,
            groups,
            conditions={"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned"}},
        ),
    )


def load_balancers(account: Account, cluster: str) -> Document:
    """Make and change Network Load Balancers, listeners and target groups of this cluster."""
    balancers = account.arn(SERVICE, "loadbalancer/net/*")
    targets = account.arn(SERVICE, "targetgroup/*")
    listeners = account.arn(SERVICE, "listener/net/*")
    requested = {"StringEquals": {f"aws:RequestTag/{OWNER_TAG}": cluster}}
    own = {"StringEquals": {f"aws:ResourceTag/{OWNER_TAG}": cluster}}
    created = ["CreateLoadBalancer", "CreateTargetGroup", "CreateListener"]
    return document(
        allow(
            "CreateWithTag",
            [f"{SERVICE}:{action}" for action in created[:2]],
            [balancers, targets],
            conditions=requested,
        ),
        allow(
            "TagOnCreation",
            [f"{SERVICE}:AddTags"],
            [balancers, targets, listeners],
            conditions={"StringEquals": {**requested["StringEquals"], f"{SERVICE}:CreateAction": created}},
        ),
        allow(
            "ChangeOwn",
            [
                f"{SERVICE}:{action}"
                for action in (
                    "AddTags",
                    "CreateListener",
                    "DeleteListener",
                    "DeleteLoadBalancer",
                    "DeleteTargetGroup",
                    "DeregisterTargets",
                    "AddListenerCertificates",
                    "ModifyListener",
                    "ModifyListenerAttributes",
                    "ModifyLoadBalancerAttributes",
                    "ModifyTargetGroup",
                    "ModifyTargetGroupAttributes",
                    "RegisterTargets",
                    "RemoveListenerCertificates",
                    "RemoveTags",
                    "SetIpAddressType",
                    "SetSecurityGroups",
                    "SetSubnets",
                )
            ],
            [balancers, targets, listeners],
            conditions=own,
        ),
        allow(
            "FirstLoadBalancerOfTheAccount",
            ["iam:CreateServiceLinkedRole"],
            [account.role(f"aws-service-role/{SERVICE}.amazonaws.com/*")],
            conditions={"StringEquals": {"iam:AWSServiceName": f"{SERVICE}.amazonaws.com"}},
        ),
    )


def controller_policies(account: Account, cluster: str) -> dict[str, Document]:
    """Policy documents by name."""
    return {
        "reads": reads(account),
        "security-groups": security_groups(account, cluster),
        "load-balancers": load_balancers(account, cluster),
    }
