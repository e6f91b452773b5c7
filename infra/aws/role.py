"""An IAM role with its managed and own policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents.statements import Document, to_json
from srvmod.infra.aws.names import Names


@dataclass(frozen=True)
class RoleArgs:
    """`part` names the role; `managed` are ARNs by a short key, `policies` our own documents by name."""

    names: Names
    part: str
    description: str
    trust: Document
    managed: Mapping[str, str] = field(default_factory=dict[str, str])
    policies: Mapping[str, pulumi.Input[str] | Document] = field(
        default_factory=dict[str, "pulumi.Input[str] | Document"]
    )


class Role(pulumi.ComponentResource):
    """A role whose name is known before it exists, so that manifests can carry it in preview."""

    name: str
    arn: pulumi.Output[str]
    resource: aws.iam.Role
    attachments: Sequence[pulumi.Resource]

    def __init__(self, name: str, args: RoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:Role", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.name = args.names.of(args.part)
        self.resource = aws.iam.Role(
            name,
            name=self.name,
            description=args.description,
            assume_role_policy=to_json(args.trust),
            tags=args.names.tags(args.part),
            opts=child,
        )
        attachments: list[pulumi.Resource] = [
            aws.iam.RolePolicyAttachment(f"{name}-{key}", role=self.resource.name, policy_arn=arn, opts=child)
            for key, arn in args.managed.items()
        ]
        for key, document in args.policies.items():
            policy = aws.iam.Policy(
                f"{name}-{key}",
                name=f"{self.name}-{key}",
                description=f"{args.description}: {key}",
                policy=to_json(document) if isinstance(document, dict) else document,
                tags=args.names.tags(f"{args.part}-{key}"),
                opts=child,
            )
            attachments.append(
                aws.iam.RolePolicyAttachment(
                    f"{name}-{key}", role=self.resource.name, policy_arn=policy.arn, opts=child
                )
            )
        self.attachments = tuple(attachments)
        self.arn = self.resource.arn
        self.register_outputs({"name": self.resource.name, "arn": self.arn})
