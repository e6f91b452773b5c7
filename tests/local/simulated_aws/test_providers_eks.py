"""The eks component's arguments and kubeconfig, and the token command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from srvmod.local.providers.eks.cluster import TOKEN_COMMAND, UnhandledArgument, check, kubeconfig

GOOD: dict[str, Any] = {
    "name": "c",
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "useDefaultVpcCni": True,
    "kubeProxyAddonOptions": {"enabled": False, "resolveConflictsOnCreate": "OVERWRITE"},
    "corednsAddonOptions": {"enabled": False},
}


def test_what_the_product_asks_for_is_handled() -> None:
    check(GOOD)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"skipDefaultNodeGroup": False}, "skipDefaultNodeGroup=False"),
        ({"createOidcProvider": True}, "createOidcProvider=True"),
        ({"corednsAddonOptions": {"enabled": True}}, "corednsAddonOptions"),
        ({"fargate": True}, "fargate isn't handled"),
    ],
)
def test_anything_else_is_an_error_that_names_it(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UnhandledArgument, match=named):
        check({**GOOD, **change})


def test_what_must_be_given_is_named_when_it_is_missing() -> None:
    with pytest.raises(UnhandledArgument, match="useDefaultVpcCni must be given"):
        check({k: v for k, v in GOOD.items() if k != "useDefaultVpcCni"})


def test_the_kubeconfig_runs_the_token_command_and_holds_no_secret() -> None:
    found = kubeconfig("c", "https://127.0.0.1:6443", "UEVN")
    user = found["users"][0]["user"]
    assert list(user) == ["exec"]
    assert user["exec"]["command"] == str(TOKEN_COMMAND)
    assert Path(user["exec"]["command"]).is_absolute()


def run(**env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SRVMOD_")}
    argv = [TOKEN_COMMAND, "--cluster-name", "c"]
    return subprocess.run(argv, env={**clean, **env}, cwd="/", capture_output=True, text=True, check=False)


def test_the_token_command_gives_the_stacks_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc-123\n")
    found = json.loads(run(SRVMOD_LOCAL_TOKEN_FILE=str(file)).stdout)
    assert (found["kind"], found["status"]) == ("ExecCredential", {"token": "abc-123"})
    (tmp_path / "local" / "pki").mkdir(parents=True)
    (tmp_path / "local" / "pki" / "eks-token").write_text("def")
    assert json.loads(run(SRVMOD_STATE=str(tmp_path)).stdout)["status"]["token"] == "def"


def test_without_a_stack_the_token_command_says_what_to_do(tmp_path: Path) -> None:
    answer = run(SRVMOD_STATE=str(tmp_path))
    assert answer.returncode == 1
    assert "srvmod local up" in answer.stderr
