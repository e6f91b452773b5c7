"""EventBridge rules and targets, and log groups."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_list, as_map, half_made, tag_changes
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props


class EventRule(Resource):
    token = "aws:cloudwatch/eventRule:EventRule"
    cfn = "AWS::Events::Rule"
    args: ClassVar = {
        "name": Arg("Name"),
        "description": Arg("Description"),
        "eventPattern": Arg("EventPattern", document=True),
        "scheduleExpression": Arg("ScheduleExpression"),
        "state": Arg("State"),
        **TAGS,
    }
    outputs = ("arn",)
    absent = ("isEnabled",)
    autoname = "name"
    longest_name = 64

    def create(self, aws: Aws, props: Props) -> str:
        aws("events", "put_rule", **self._rule(props), Tags=as_list(aws.tags(props)) or None)
        return str(props["name"])

    def _rule(self, props: Props) -> Props:
        return {"Name": props["name"], "Description": props.get("description"),
                "EventPattern": props.get("eventPattern"), "ScheduleExpression": props.get("scheduleExpression"),
                "State": props.get("state")}  # fmt: skip

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        rule = aws("events", "describe_rule", Name=identity)
        names = {"description": "Description", "eventPattern": "EventPattern", "state": "State",
                 "scheduleExpression": "ScheduleExpression"}  # fmt: skip
        tags = aws("events", "list_tags_for_resource", ResourceARN=rule["Arn"]).get("Tags")
        return {
            "arn": rule["Arn"],
            "name": rule["Name"],
            "tags": as_map(tags),
            **{name: rule[key] for name, key in names.items() if rule.get(key)},
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        arn = aws("events", "put_rule", **self._rule(new))["RuleArn"]
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("events", "tag_resource", ResourceARN=arn, Tags=as_list(put))
        if gone:
            aws("events", "untag_resource", ResourceARN=arn, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("events", "delete_rule", Name=identity)


class EventTarget(Resource):
    token = "aws:cloudwatch/eventTarget:EventTarget"
    cfn = "AWS::Events::Rule"
    args: ClassVar = {
        "rule": Arg("Name", required=True),
        "targetId": Arg("Targets/Id", identity=True),
        "arn": Arg("Targets/Arn", required=True),
    }
    autoname = "targetId"
    longest_name = 64

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return f"{props['rule']}-{props['targetId']}"

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        targets = aws("events", "list_targets_by_rule", Rule=props["rule"])["Targets"]
        target = next((t for t in targets if t["Id"] == props["targetId"]), None)
        return target and {"rule": props["rule"], "targetId": target["Id"], "arn": target["Arn"]}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        target = {"Id": new["targetId"], "Arn": new["arn"]}
        answer = aws("events", "put_targets", Rule=new["rule"], Targets=[target])
        if answer["FailedEntryCount"]:
            raise ValueError(f"put_targets({new['rule']}, {target}) refused: {answer['FailedEntries']}")

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("events", "remove_targets", Rule=props["rule"], Ids=[props["targetId"]])


class LogGroup(Resource):
    token = "aws:cloudwatch/logGroup:LogGroup"
    cfn = "AWS::Logs::LogGroup"
    args: ClassVar = {
        "name": Arg("LogGroupName"),
        "retentionInDays": Arg("RetentionInDays"),
        "kmsKeyId": Arg("KmsKeyId"),
        **TAGS,
    }
    outputs = ("arn",)
    absent = ("deletionProtectionEnabled", "logGroupClass")
    autoname = "name"
    longest_name = 512

    def create(self, aws: Aws, props: Props) -> str:
        aws("logs", "create_log_group", logGroupName=props["name"], kmsKeyId=props.get("kmsKeyId"),
            tags=aws.tags(props) or None)  # fmt: skip
        with half_made(props["name"]):
            self._keep(aws, {}, props)
        return str(props["name"])

    def _keep(self, aws: Aws, old: Props, new: Props) -> None:
        days = new.get("retentionInDays")
        if days == old.get("retentionInDays"):
            return
        if days:
            aws("logs", "put_retention_policy", logGroupName=new["name"], retentionInDays=days)
        else:
            aws("logs", "delete_retention_policy", logGroupName=new["name"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("logs", "describe_log_groups", logGroupNamePrefix=identity)["logGroups"]
        group = next((g for g in found if g["logGroupName"] == identity), None)
        if group is None:
            return None
        arn = group["arn"].removesuffix(":*")
        return {
            "arn": arn,
            "name": identity,
            "tags": aws("logs", "list_tags_for_resource", resourceArn=arn).get("tags", {}),
            **{k: group[k] for k in ("retentionInDays", "kmsKeyId") if group.get(k)},
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        self._keep(aws, old, new)
        if old.get("kmsKeyId") != new.get("kmsKeyId"):
            if key := new.get("kmsKeyId"):
                aws("logs", "associate_kms_key", logGroupName=identity, kmsKeyId=key)
            else:
                aws("logs", "disassociate_kms_key", logGroupName=identity)
        arn = f"arn:aws:logs:{aws.region}:{aws.account}:log-group:{identity}"
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("logs", "tag_resource", resourceArn=arn, tags=put)
        if gone:
            aws("logs", "untag_resource", resourceArn=arn, tagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("logs", "delete_log_group", logGroupName=identity)


TYPES: tuple[Resource, ...] = (EventRule(), EventTarget(), LogGroup())
