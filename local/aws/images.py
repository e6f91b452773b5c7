"""EKS-optimised AMIs: the images in moto's EC2 and the public SSM parameters that name them.

Karpenter resolves ``al2023@v20260714`` through
/aws/service/eks/optimized-ami/<k8s>/amazon-linux-2023/<arch>/<variant>/<name or recommended>/image_id
and then describes the images.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, cast

from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter, ssm_backends

from srvmod.local.aws.context import Context
from srvmod.local.aws.world import Image, World

OWNER = "602401143452"  # the account that publishes EKS's AMIs in most regions
RELEASE = "20260714"
_VARIANTS = {"x86_64": ("standard", "nvidia", "neuron"), "arm64": ("standard", "nvidia")}


def defaults(world: World, release: str = RELEASE) -> list[Image]:
    """One AMI per Kubernetes version, architecture and variant, as EKS publishes them for ``release``."""
    return [
        image(version.version, architecture, variant, release)
        for version in world.versions
        for architecture, variants in _VARIANTS.items()
        for variant in variants
    ]


def image(kubernetes: str, architecture: str, variant: str, release: str) -> Image:
    """An AMI with an id that follows from its name."""
    digest = hashlib.sha256(f"{kubernetes}/{architecture}/{variant}/{release}".encode()).hexdigest()
    return Image(f"ami-{digest[:17]}", kubernetes, architecture, variant, release)


def parameters(images: list[Image]) -> dict[str, str]:
    """SSM parameter -> AMI id: one per release, and `recommended` for the newest."""
    found: dict[str, str] = {}
    for ami in sorted(images, key=lambda i: i.release):
        base = f"/aws/service/eks/optimized-ami/{ami.kubernetes}/amazon-linux-2023/{ami.architecture}/{ami.variant}"
        found[f"{base}/{ami.name}/image_id"] = ami.image_id
        found[f"{base}/recommended/image_id"] = ami.image_id
    return found


def publish(context: Context) -> None:
    """Bring moto's EC2 and SSM of this region in line with the world's images. Idempotent."""
    wanted = {i.image_id: i for i in context.world.images}
    ec2 = context.ec2
    for known in [a.id for a in ec2.amis.values() if a.owner_id == OWNER]:
        if known not in wanted:
            del ec2.amis[known]
    for ami in wanted.values():
        if ami.image_id not in ec2.amis:
            ec2.amis[ami.image_id] = Ami(
                ec2, ami.image_id, name=ami.name, description="simulated EKS AMI", owner_id=OWNER,
                owner_alias="amazon", public=True, virtualization_type="hvm", architecture=ami.architecture,
                creation_date=_created(ami.release), root_device_type="ebs", root_device_name="/dev/xvda",
                hypervisor="xen", region_name=f"{context.region}a",
            )  # fmt: skip
    store = ssm_backends[context.account][context.region]._parameters
    names = parameters(list(wanted.values()))
    for stale in [n for n in store if n.startswith("/aws/service/eks/optimized-ami/") and n not in names]:
        del store[stale]
    for name, value in names.items():
        if name not in store or store[name][-1].value != value:
            made = Parameter(
                context.account, name, value, "String", "simulated", None, None, datetime.now(UTC), 1, "text"
            )
            store[name] = cast(Any, [made])


def _created(release: str) -> datetime:
    return datetime.strptime(release, "%Y%m%d").replace(tzinfo=UTC)
