"""The AMI that the pool's alias names."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, ok, will_fail

ARCHITECTURE, VARIANT = "x86_64", "nvidia"
"""Karpenter takes the NVIDIA variant for instance types with GPUs."""


def parameter(alias: str, kubernetes: str) -> str:
    """The public SSM parameter that Karpenter resolves an `al2023@vYYYYMMDD` alias by."""
    release = alias.partition("@")[2]
    name = f"amazon-eks-node-al2023-{ARCHITECTURE}-{VARIANT}-{kubernetes}-{release}"
    return f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{ARCHITECTURE}/{VARIANT}/{name}/image_id"


def alias(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The alias resolves to an image that is there."""
    wanted, version = needs.pool.ami_alias, needs.cluster.kubernetes_version
    subject, name = f"AMI {wanted}", parameter(needs.pool.ami_alias, needs.cluster.kubernetes_version)
    needed = f"an image for Kubernetes {version}, {ARCHITECTURE}, {VARIANT}"
    fix = (
        "choose a release of github.com/awslabs/amazon-eks-ami for srvmod:pool.amiAlias: "
        f"aws ssm get-parameters-by-path --path {name.rsplit('/', 2)[0]} --recursive"
    )
    try:
        image = str(aws.ask("ssm", "get_parameter", Name=name)["Parameter"]["Value"])
    except RefusedError as error:
        if error.code != "ParameterNotFound":
            raise
        yield will_fail(subject, f"no parameter {name}", needed, fix)
        return
    try:
        images = aws.ask("ec2", "describe_images", ImageIds=[image])["Images"]
    except RefusedError as error:
        if not error.code.startswith("InvalidAMIID"):
            raise
        images = []
    if not images or images[0].get("State", "available") != "available":
        yield will_fail(subject, f"{image}, which isn't available in {needs.region}", needed, fix)
    else:
        yield ok(subject, f"{image} {images[0].get('Name', '')}".strip(), needed)
