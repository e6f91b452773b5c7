"""Claims of docs/first-day.md that can be tried without an account."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from srvmod.infra import identifiers
from srvmod.tools import ensure
from tests.acceptance.deployment import account
from tests.docs.blocks import blocks
from tests.docs.commands import PULUMI

pytestmark = pytest.mark.acceptance


def test_the_bucket_comes_before_everything_else_and_again(tmp_path: Path) -> None:
    """The page's own command makes bucket and key, nothing that costs, and does nothing the second time."""
    [block] = blocks(tag="phase")
    with account("prod", tmp_path, lambda sections: None) as prod:
        for times in (1, 2):
            done = subprocess.run(
                ["bash", "-c", f"{block.text.strip()} --non-interactive"], cwd=tmp_path / "project",
                env=prod.variables, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"run {times}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        buckets = [bucket["Name"] for bucket in prod.client("s3").list_buckets()["Buckets"]]
        assert identifiers.weights_bucket(prod.settings) in buckets
        assert prod.client("eks").list_clusters()["clusters"] == []
        tagged = [{"Name": "tag-key", "Values": ["srvmod.dev/environment"]}]
        assert prod.client("ec2").describe_vpcs(Filters=tagged)["Vpcs"] == []
        encryption = prod.client("s3").get_bucket_encryption(Bucket=identifiers.weights_bucket(prod.settings))
        assert "aws:kms" in str(encryption["ServerSideEncryptionConfiguration"])


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
