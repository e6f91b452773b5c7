"""What a handler gets to see of the call it answers, and how it looks into moto's own objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from srvmod.local.aws.wire import AwsError
from srvmod.local.aws.world import World

Handler = Callable[["Context", Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Context:
    """The region a call is for, who makes it (by access key), and the state behind it."""

    world: World
    region: str
    access_key: str = ""

    @property
    def account(self) -> str:
        return self.world.account

    @property
    def ec2(self) -> Any:
        """moto's EC2 of this region."""
        return ec2_backends[self.account][self.region]

    @property
    def principal(self) -> str:
        """ARN of the IAM role or user that makes the call: what EKS takes a cluster's creator for. A session of a role
        is the role itself, with its path."""
        _, arn, _ = sts_backends[self.account]["aws"].get_caller_identity(self.access_key, self.region)
        kind, _, name = arn.rpartition(":")[2].partition("/")
        if kind == "assumed-role":
            roles = iam_backends[self.account]["aws"].roles.values()
            return next(str(role.arn) for role in roles if role.name == name.partition("/")[0])
        return arn.replace(":sts:", ":iam:")

    def require_role(self, arn: str, argument: str, code: str = "InvalidParameterException") -> None:
        """AwsError ``code`` when there is no such role in this account."""
        roles = iam_backends[self.account]["aws"].roles.values()
        if not any(role.arn == arn for role in roles):
            known = ", ".join(sorted(role.name for role in roles)) or "none"
            raise AwsError(code, f"{argument}: role {arn} does not exist in account {self.account} (roles: {known})")

    def require_subnets(self, ids: list[str], argument: str) -> list[Any]:
        """moto's subnets for ``ids``; AwsError names those that don't exist."""
        found = {s.id: s for zone in self.ec2.subnets.values() for s in zone.values()}
        if missing := [i for i in ids if i not in found]:
            raise AwsError(
                "InvalidParameterException", f"{argument}: the subnet ID(s) {', '.join(missing)} do not exist"
            )
        return [found[i] for i in ids]
