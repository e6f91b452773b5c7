"""A cloud that answers with placeholders: what only exists after a deployment gets a name instead of a value."""

from collections.abc import Mapping
from typing import Any, NoReturn

from pulumi.runtime import mocks

CLUSTER_COMPONENT = "eks:index:Cluster"
SECRET_VERSION = "aws:secretsmanager/getSecretVersion:getSecretVersion"
ROLE = "aws:iam/getRole:getRole"
CLUSTER = "aws:eks/cluster:Cluster"

COMPUTED: Mapping[str, tuple[str, ...]] = {
    "aws:ec2/vpc:Vpc": ("arn",),
    "aws:ec2/securityGroup:SecurityGroup": ("arn",),
    "aws:eks/nodeGroup:NodeGroup": ("nodeGroupName",),
    "aws:ec2/launchTemplate:LaunchTemplate": ("latestVersion",),
    "aws:iam/role:Role": ("arn",),
    "aws:iam/policy:Policy": ("arn",),
    "aws:kms/key:Key": ("arn", "keyId"),
    "aws:sqs/queue:Queue": ("arn", "url"),
    "aws:s3/bucket:Bucket": ("arn",),
    "aws:ecr/repository:Repository": ("arn", "repositoryUrl"),
    "aws:amp/workspace:Workspace": ("arn", "prometheusEndpoint"),
    "aws:cloudwatch/eventRule:EventRule": ("arn",),
    "aws:cloudwatch/logGroup:LogGroup": ("arn",),
}
"""Outputs that AWS computes and the program reads. Any other output that it reads fails in a test."""


def placeholder(resource: str, field: str) -> str:
    """The name that stands for a value, e.g. `<weights:arn>`."""
    return f"<{resource}:{field}>"


class PlaceholderCloud(mocks.Mocks):
    """Echoes inputs and names what is computed. With `known=False` it behaves as a first preview: nothing that
    AWS computes is known, and no id."""

    def __init__(self, *, known: bool = True, secrets: Mapping[str, str] | None = None) -> None:
        self.known, self.secrets = known, secrets or {}
        self.monitor: Any = None
        """Set by the recorder: remote components register their children through it."""

    def computed(self, kind: str, name: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Id (empty when unknown) and computed outputs of a new resource."""
        if not self.known and kind.startswith(("aws:", "eks:")):
            return "", {}
        fields = {field: placeholder(name, field) for field in COMPUTED.get(kind, ()) if field not in inputs}
        if kind == CLUSTER_COMPONENT:
            fields |= self._cluster(name, inputs["name"])
        return placeholder(name, "id"), fields

    def new_resource(self, args: mocks.MockResourceArgs) -> NoReturn:
        """Only reading an existing resource comes here: the recorder answers registrations itself."""
        raise NotImplementedError(f"{args.typ} {args.name}: the program reads no existing resources")

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The program asks AWS for its API keys and whether a role exists, and nothing else, while it runs."""
        if args.token == ROLE:
            return {"name": args.args["name"], "arn": placeholder(args.args["name"], "arn")}, []
        if args.token != SECRET_VERSION:
            raise NotImplementedError(f"{args.token}: not among the program's invokes; fix: take it from settings")
        name = args.args["secretId"]
        secret = {"secretId": name, "secretString": self.secrets[name], "versionId": placeholder(name, "versionId")}
        return secret, []

    def _cluster(self, name: str, cluster: str) -> dict[str, Any]:
        state = {"name": cluster, "arn": placeholder(name, "arn"), "endpoint": placeholder(name, "endpoint")}
        return {
            "eksCluster": self.monitor.reference(CLUSTER, name, state),
            "clusterSecurityGroupId": placeholder(name, "securityGroupId"),
            "kubeconfigJson": placeholder(name, "kubeconfig"),
        }
