"""Launch templates: each change is a new version of the same template."""

from __future__ import annotations

from typing import Any, ClassVar

from srvmod.local.providers.aws.base import Arg, Resource, as_list, as_map
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.aws.ec2_common import arn, one, retag, specification
from srvmod.local.providers.values import Props

_METADATA = {
    "httpEndpoint": "HttpEndpoint",
    "httpTokens": "HttpTokens",
    "httpPutResponseHopLimit": "HttpPutResponseHopLimit",
}
_EBS = {
    "volumeSize": "VolumeSize",
    "volumeType": "VolumeType",
    "encrypted": "Encrypted",
    "deleteOnTermination": "DeleteOnTermination",
}
_BOOLEANS = {"encrypted", "deleteOnTermination"}
"""Pulumi's type has them as text."""


class LaunchTemplate(Resource):
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    cfn = "AWS::EC2::LaunchTemplate"
    args: ClassVar = {
        "name": Arg("LaunchTemplateName"),
        "updateDefaultVersion": Arg(),
        "metadataOptions": Arg("LaunchTemplateData/MetadataOptions", of={k: Arg(v) for k, v in _METADATA.items()}),
        "blockDeviceMappings": Arg("LaunchTemplateData/BlockDeviceMappings", of={
            "deviceName": Arg("DeviceName"), "ebs": Arg("Ebs", of={k: Arg(v) for k, v in _EBS.items()}),
        }),
        "tagSpecifications": Arg("LaunchTemplateData/TagSpecifications", of={
            "resourceType": Arg("ResourceType"), "tags": Arg("Tags"),
        }),
        "tags": Arg(),  # TagSpecifications of the template itself in CloudFormation
    }  # fmt: skip
    outputs = ("arn", "latestVersion")
    absent = ("defaultVersion", "namePrefix")
    autoname = "name"
    longest_name = 128

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_launch_template", LaunchTemplateName=props["name"], LaunchTemplateData=_data(props),
                   TagSpecifications=specification(aws, "launch-template", props))  # fmt: skip
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = one(aws, "describe_launch_templates", "LaunchTemplates", LaunchTemplateIds=[identity])
        if found is None:
            return None
        newest = one(aws, "describe_launch_template_versions", "LaunchTemplateVersions", LaunchTemplateId=identity,
                     Versions=[str(found["LatestVersionNumber"])])  # fmt: skip
        return {
            "arn": arn(aws, "launch-template", identity),
            "name": found["LaunchTemplateName"],
            "latestVersion": found["LatestVersionNumber"],
            "tags": self._tags(aws, identity),
            **_arguments(newest["LaunchTemplateData"] if newest else {}),
        }

    def _tags(self, aws: Aws, identity: str) -> dict[str, str]:
        filters: Any = [{"Name": "resource-id", "Values": [identity]}]
        return as_map(aws("ec2", "describe_tags", Filters=filters)["Tags"])

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if _data(old) != _data(new):
            made = aws("ec2", "create_launch_template_version", LaunchTemplateId=identity,
                       LaunchTemplateData=_data(new))["LaunchTemplateVersion"]  # fmt: skip
            if new.get("updateDefaultVersion"):
                aws("ec2", "modify_launch_template", LaunchTemplateId=identity,
                    DefaultVersion=str(made["VersionNumber"]))  # fmt: skip
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_launch_template", LaunchTemplateId=identity)


def _data(props: Props) -> Props:
    """What EC2 calls LaunchTemplateData."""
    data: Props = {}
    if options := props.get("metadataOptions"):
        data["MetadataOptions"] = {_METADATA[name]: value for name, value in options.items()}
    if mappings := props.get("blockDeviceMappings"):
        data["BlockDeviceMappings"] = [
            {"DeviceName": mapping["deviceName"], "Ebs": {_EBS[k]: _typed(k, v) for k, v in mapping["ebs"].items()}}
            for mapping in mappings
        ]
    if specifications := props.get("tagSpecifications"):
        data["TagSpecifications"] = [
            {"ResourceType": s["resourceType"], "Tags": as_list(s["tags"])} for s in specifications
        ]
    return data


def _typed(name: str, value: Any) -> Any:
    return value == "true" if name in _BOOLEANS else value


def _arguments(data: Props) -> Props:
    """A version's data as Pulumi's arguments."""
    found: Props = {}
    if options := data.get("MetadataOptions"):
        found["metadataOptions"] = {name: options[key] for name, key in _METADATA.items() if key in options}
    if mappings := data.get("BlockDeviceMappings"):
        found["blockDeviceMappings"] = [
            {
                "deviceName": mapping["DeviceName"],
                "ebs": {
                    name: str(mapping["Ebs"][key]).lower() if name in _BOOLEANS else mapping["Ebs"][key]
                    for name, key in _EBS.items()
                    if key in mapping["Ebs"]
                },
            }
            for mapping in mappings
        ]
    if specifications := data.get("TagSpecifications"):
        found["tagSpecifications"] = [
            {"resourceType": s["ResourceType"], "tags": as_map(s["Tags"])}
            for s in specifications
            if s["ResourceType"] != "launch-template"  # moto keeps the template's own tags among its data
        ]
    return found


TYPES: tuple[Resource, ...] = (LaunchTemplate(),)
