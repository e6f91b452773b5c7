"""Claims of docs/first-day.md that can be tried without an account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from srvmod.infra import identifiers
from srvmod.infra.aws.api_keys import KeysSecret
from srvmod.tools import ensure
from tests.acceptance.deployment import account
from tests.docs.blocks import ROOT, blocks
from tests.docs.commands import PULUMI
from tests.lint.__main__ import tool

pytestmark = pytest.mark.acceptance
PAGE = ROOT / "docs" / "first-day.md"
UNSIMULATED = "aws service-quotas request-service-quota-increase"
"""AWS's command line takes it, and the simulated account says that it can't."""


@pytest.mark.parametrize("subcommand", sorted(PULUMI))
def test_options_of_pulumi_in_prose_are_its_own(subcommand: str) -> None:
    pulumi = ensure(["pulumi"])["pulumi"]
    helped = "".join(
        subprocess.run(
            [str(pulumi), subcommand, *more, "--help"], env={"PULUMI_EXPERIMENTAL": "true", "HOME": "/nonexistent"},
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout
        for more in {"stack": [[], ["init"], ["output"], ["export"]], "config": [[], ["set"]],
                     "state": [[], ["unprotect"]]}.get(subcommand, [[]])
    )  # fmt: skip
    unknown = [option for option in PULUMI[subcommand] if not re.search(rf"{option}[ \[\n]", helped)]
    assert unknown == []


def test_commands_for_an_account_run_on_a_simulated_one(tmp_path: Path) -> None:
    """In order, by AWS's own command line, what is in capitals filled in."""
    with account("prod", tmp_path, lambda sections: None) as deployment:
        settings = deployment.settings
        deployment.client("secretsmanager").delete_secret(
            SecretId=identifiers.api_keys_secret(settings), ForceDeleteWithoutRecovery=True
        )
        deployment.client("iam").delete_role(RoleName="srvmod-plan")  # the page makes it
        for bucket in (identifiers.weights_bucket(settings), identifiers.log_bucket(settings), "acme-audit"):
            deployment.client("s3").create_bucket(Bucket=bucket)
        zone = deployment.client("route53").create_hosted_zone(Name="example.com", CallerReference="1")
        words = {"COMPANY": "acme", "VCPUS": "1152", "ZONE": zone["HostedZone"]["Id"].rpartition("/")[2]}
        _files(tmp_path)
        path = f"{tool('aws').parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**deployment.variables, "PATH": path, "AWS_DEFAULT_REGION": settings.aws.region, "AWS_PAGER": ""}
        for line in _commands():
            command = re.sub(r"\b[A-Z_]{4,}\b", lambda found: words.get(found[0], found[0]), line)
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
            )
            told = f"{command}\n{done.stdout}{done.stderr}"
            if command.startswith(UNSIMULATED):
                assert "isn't simulated" in done.stderr, told
                continue
            assert done.returncode == 0, told
            if command.startswith("aws kms create-key"):
                words["KEY_ID"] = json.loads(done.stdout)["KeyMetadata"]["KeyId"]
        read = KeysSecret(identifiers.api_keys_secret(settings), identifiers.account(settings), ())
        value = deployment.client("secretsmanager").get_secret_value(SecretId=read.name)["SecretString"]
        assert set(replace(read, clients=settings.gateway.api_clients).checked(value)) == {
            *settings.gateway.api_clients
        }
        rotated = deployment.client("kms").get_key_rotation_status(KeyId=words["KEY_ID"])
        assert rotated["KeyRotationEnabled"]
        assert deployment.client("s3").get_bucket_versioning(Bucket="acme-pulumi-state")["Status"] == "Enabled"


def _commands() -> list[str]:
    """Lines that ask AWS, and those that make the files which they read."""
    lines = [
        line for block in blocks() if block.file == PAGE for line in block.text.splitlines()
        if line.startswith(("aws ", "python3 -c ", "rm "))
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("aws ")]) > 10
    return lines


def _files(folder: Path) -> None:
    """What a person has at hand: weights, their manifest, a DNS record."""
    (folder / "2026-09-15").mkdir()
    (folder / "2026-09-15/config.json").write_text("{}")
    (folder / "manifest.json").write_text('{"schema": 1, "revision": "2026-09-15", "files": []}')
    record = {"Name": "inference.example.com", "Type": "CNAME", "TTL": 60, "ResourceRecords": [{"Value": "lb.aws"}]}
    change = {"Changes": [{"Action": "UPSERT", "ResourceRecordSet": record}]}
    (folder / "record.json").write_text(json.dumps(change))
    trust = {"Effect": "Allow", "Principal": {"Federated": "github"}, "Action": "sts:AssumeRoleWithWebIdentity"}
    keys = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": "*"}
    for name, statement in {"github": trust, "plan": keys}.items():
        (folder / f"{name}.json").write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
