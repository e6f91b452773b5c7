"""The six policies of Karpenter's controller.

Source: getting-started CloudFormation template of karpenter-provider-aws, made narrower: no spot requests and no
placement groups, which the pool doesn't use; no launch from another cluster's templates; no `ZonalShift`, the chart's
`settings.enableZonalShift` stays off. Writes are tied to the tags that Karpenter puts on what it owns.
"""

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.documents.wildcards import allow_everywhere
from srvmod.infra.aws.names import Account

OWNED = "kubernetes.io/cluster/{cluster}"
NODEPOOL = "karpenter.sh/nodepool"
NODECLASS = "karpenter.k8s.aws/ec2nodeclass"
REGION = "topology.kubernetes.io/region"


def controller_policies(account: Account, cluster: str, node_role: str, queue: str) -> dict[str, Document]:
    """Policy documents by name; `node_role` and `queue` are names, not ARNs."""
    return {
        "node-lifecycle": node_lifecycle(account, cluster),
        "iam-integration": iam_integration(account, cluster, node_role),
        "eks-integration": eks_integration(account, cluster),
        "interruption": interruption(account, queue),
        "discovery": discovery(account),
        "images-and-prices": images_and_prices(account),
    }


def node_lifecycle(account: Account, cluster: str) -> Document:
    """Launch, tag and terminate the instances and launch templates of this cluster only."""
    shared = ("image", "snapshot")
    referenced = ("security-group", "subnet", "capacity-reservation")
    launched = ("fleet", "instance", "volume", "network-interface")
    owned = OWNED.format(cluster=cluster)
    request = {
        "StringEquals": {f"aws:RequestTag/{owned}": "owned", "aws:RequestTag/eks:eks-cluster-name": cluster},
        "StringLike": {f"aws:RequestTag/{NODEPOOL}": "*"},
    }
    existing = {
        "StringEquals": {f"aws:ResourceTag/{owned}": "owned"},
        "StringLike": {f"aws:ResourceTag/{NODEPOOL}": "*"},
    }
    templates = [account.arn("ec2", "launch-template/*")]
    launched_arns = [account.arn("ec2", f"{kind}/*") for kind in launched]
    return document(
        allow(
            "UseExistingResources",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            [account.arn("ec2", f"{kind}/*", owned=False) for kind in shared]
            + [account.arn("ec2", f"{kind}/*") for kind in referenced],
        ),
        allow(
            "UseOwnLaunchTemplates",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            templates,
            conditions=existing,
        ),
        # Two statements: launching with the right tags must not open templates that another cluster made.
        allow("LaunchWithTags", ["ec2:RunInstances", "ec2:CreateFleet"], launched_arns, conditions=request),
        allow("CreateTemplatesWithTags", ["ec2:CreateLaunchTemplate"], templates, conditions=request),
        allow(
            "TagOnCreation",
            ["ec2:CreateTags"],
            [*launched_arns, *templates],
            conditions={
                **request,
                "StringEquals": {
                    **request["StringEquals"],
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
            },
        ),
        allow(
            "TagOwnInstances",
            ["ec2:CreateTags"],
            [account.arn("ec2", "instance/*")],
            conditions={
                **existing,
                "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                },
            },
        ),
        allow(
            "DeleteOwn",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            [account.arn("ec2", "instance/*"), *templates],
            conditions=existing,
        ),
    )


def iam_integration(account: Account, cluster: str, node_role: str) -> Document:
    """Pass the node role to EC2 and keep the instance profiles that carry it."""
    owned = OWNED.format(cluster=cluster)
    profiles = [account.arn("iam", "instance-profile/*", regional=False)]

    def tagged(kind: str) -> dict[str, dict[str, str]]:
        equals = {
            f"aws:{kind}/{owned}": "owned",
            f"aws:{kind}/{REGION}": account.region,
        }
        return {"StringEquals": equals, "StringLike": {f"aws:{kind}/{NODECLASS}": "*"}}

    request, existing = tagged("RequestTag"), tagged("ResourceTag")
    request["StringEquals"]["aws:RequestTag/eks:eks-cluster-name"] = cluster
    both = {operator: {**existing[operator], **request[operator]} for operator in request}
    return document(
        allow(
            "PassNodeRole",
            ["iam:PassRole"],
            [account.role(node_role)],
            conditions={"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}},
        ),
        allow("CreateProfiles", ["iam:CreateInstanceProfile"], profiles, conditions=request),
        allow("TagProfiles", ["iam:TagInstanceProfile"], profiles, conditions=both),
        allow(
            "ChangeOwnProfiles",
            [
                "iam:AddRoleToInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:DeleteInstanceProfile",
            ],
            profiles,
            conditions=existing,
        ),
        allow("ReadProfiles", ["iam:GetInstanceProfile"], profiles),
        allow_everywhere("ListProfiles", ["iam:ListInstanceProfiles"], account.region),
    )


def eks_integration(account: Account, cluster: str) -> Document:
    """Read this cluster's endpoint and version."""
    return document(allow("DescribeCluster", ["eks:DescribeCluster"], [account.arn("eks", f"cluster/{cluster}")]))


def interruption(account: Account, queue: str) -> Document:
    """Receive and delete messages of the interruption queue."""
    return document(
        allow(
            "ReadQueue",
            ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            [account.arn("sqs", queue)],
        )
    )


def discovery(account: Account) -> Document:
    """Describe calls of EC2."""
    things = (
        "CapacityReservations",
        "Images",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "Instances",
        "LaunchTemplates",
        "SecurityGroups",
        "SpotPriceHistory",
        "Subnets",
    )
    return document(allow_everywhere("DescribeInRegion", [f"ec2:Describe{thing}" for thing in things], account.region))


def images_and_prices(account: Account) -> Document:
    """Read AWS's public AMI parameters and price list."""
    return document(
        allow("ReadAmiParameters", ["ssm:GetParameter"], [account.arn("ssm", "parameter/aws/service/*", owned=False)]),
        allow_everywhere("ReadPrices", ["pricing:GetProducts"], account.region),
    )
