"""A cloud that answers with placeholders: what only exists after a deployment gets a name instead of a value."""

from collections.abc import Mapping
from typing import Any, NoReturn

from pulumi.runtime import mocks

CLUSTER_COMPONENT = "eks:index:Cluster"
SECRET_VERSION = "aws:secretsmanager/getSecretVersion:getSecretVersion"
CLUSTER = "aws:eks/cluster:Cluster"

COMPUTED: Mapping[str, tuple[str, ...]] = {
    "aws:ec2/vpc:Vpc": ("arn",),
    "aws:ec2/securityGroup:SecurityGroup": ("arn",),
    "aws:iam/role:Role": ("arn",),
    "aws:iam/policy:Policy": ("arn",),
    "aws:kms/key:Key": ("arn", "keyId"),
    "aws:sqs/queue:Queue": ("arn", "url"),
    "aws:s3/bucket:Bucket": ("arn",),
    "aws:ecr/repository:Repository": ("arn", "repositoryUrl"),
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

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """State of a new resource."""
        state = dict(args.inputs)
        if not self.known and args.typ.startswith(("aws:", "eks:")):
            return None, state
        for field in COMPUTED.get(args.typ, ()):
            state.setdefault(field, placeholder(args.name, field))
        if args.typ == CLUSTER_COMPONENT:
            state |= self._cluster(args)
        return placeholder(args.name, "id"), state

    def call(self, args: mocks.MockCallArgs) -> NoReturn:
        """The program asks AWS for its API keys, and nothing else, while it runs."""
        if args.token != SECRET_VERSION:
            raise NotImplementedError(f"{args.token}: not among the program's invokes; fix: take it from settings")
        name = args.args["secretId"]
        return {"secretId": name, "secretString": self.secrets[name], "versionId": placeholder(name, "versionId")}

    def _cluster(self, args: mocks.MockResourceArgs) -> dict[str, Any]:
        name = args.name
        state = {
            "name": args.inputs["name"],
            "arn": placeholder(name, "arn"),
            "endpoint": placeholder(name, "endpoint"),
        }
        return {
            "eksCluster": self.monitor.reference(CLUSTER, name, state),
            "clusterSecurityGroupId": placeholder(name, "securityGroupId"),
            "kubeconfigJson": placeholder(name, "kubeconfig"),
        }
