"""What preflight says when the account doesn't answer, and the command around it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import boto3
import botocore.session
import cfnlint
import pytest
import typer
from botocore import xform_name
from rich.console import Console
from typer.testing import CliRunner

from srvmod.ops.preflight.account import PERMISSIONS, Account
from srvmod.ops.preflight.answers import Answer, Verdict, cant_tell, exit_code, ok, will_fail
from srvmod.ops.preflight.commands import preflight
from srvmod.ops.preflight.needs import NeedsError, read
from srvmod.ops.preflight.report import lines, show
from srvmod.ops.preflight.run import CHECKS, run
from tests.ops.conftest import NEEDS, REGION, Simulated

ROOT = Path(__file__).parents[2]
SERVICES = sorted({service for service, _ in PERMISSIONS} - {"sts"})


OF_STS = {"account", "access to the cluster"}
"""Checks that ask only who calls, which is never denied."""


def shown(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.subject not in OF_STS]


def test_denied_questions_name_their_permission(account: Simulated) -> None:
    for service in SERVICES:
        account.fault(service, "*", "AccessDenied", "no", 403)
    answers = shown(account.answers(certificateArn="arn:aws:acm:us-east-1:123456789012:certificate/x"))
    assert {answer.verdict for answer in answers} == {Verdict.CANT_TELL}
    assert {answer.subject for answer in answers} == set(CHECKS) - {"subnets"} - OF_STS
    assert {answer.missing_permission for answer in answers} <= set(PERMISSIONS.values())
    assert all(answer.missing_permission in answer.do for answer in answers if answer.missing_permission)
    assert exit_code(answers) == 2
    (line,) = lines(answers)
    assert all(answer.missing_permission in line.do for answer in answers if answer.missing_permission)
    assert "--permissions" in line.do


def test_different_causes_are_different_lines(account: Simulated) -> None:
    account.fault("ec2", "*", "RequestLimitExceeded")
    account.fault("ssm", "*", "AccessDeniedException", "no", 403)
    shown_lines = [line for line in lines(account.answers()) if line.verdict is Verdict.CANT_TELL]
    assert len(shown_lines) == 2
    assert shown_lines[1].found == "denied: ssm:GetParameter"


def test_the_permission_that_aws_names_is_the_one_that_is_shown(account: Simulated) -> None:
    message = "User: arn:aws:iam::1:user/x is not authorized to perform: ec2:DescribeZebras on resource: *"
    account.fault("ec2", "DescribeInstanceTypeOfferings", "UnauthorizedOperation", message, 403)
    answer = next(answer for answer in account.answers() if answer.subject == "instance type")
    assert answer.missing_permission == "ec2:DescribeZebras"


@pytest.mark.parametrize("code", ["ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"])
def test_throttled_questions_are_no_failures(account: Simulated, code: str) -> None:
    for service in SERVICES:
        account.fault(service, "*", code)
    answers = shown(account.answers())
    assert {answer.verdict for answer in answers} == {Verdict.CANT_TELL}
    assert all("throttled" in answer.found for answer in answers)
    (line,) = lines(answers)
    assert line.subject == f"{len(answers)} needs"
    assert "quota of the pool, " in line.needed
    assert {answer.missing_permission for answer in answers} == {None}


def test_one_refused_question_does_not_stop_the_others(account: Simulated) -> None:
    account.fault("ssm", "*", "InternalServerError", "broken", 500)
    answers = account.answers()
    assert [answer.subject for answer in answers if answer.verdict is not Verdict.OK] == ["AMI"]
    assert "broken" in next(answer.found for answer in answers if answer.subject == "AMI")


def test_another_account_is_not_asked_further(account: Simulated) -> None:
    answers = account.answers(accountId="999999999999")
    assert answers[0].verdict is Verdict.WILL_FAIL
    assert "account 123456789012 as arn:aws:" in answers[0].found
    _says_once_that_the_rest_is_not_asked(answers)
    assert exit_code(answers) == 1


def _says_once_that_the_rest_is_not_asked(answers: list[Answer]) -> None:
    assert [answer.subject for answer in answers] == ["account", "all other needs"]
    assert all(name in answers[1].found for name in CHECKS)
    assert len(lines(answers)) == 2


def test_no_credentials(account: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    answers = list(run(NEEDS, Account(REGION, boto3.Session(), attempts=1)))
    assert "aws sso login" in answers[0].do
    _says_once_that_the_rest_is_not_asked(answers)
    assert exit_code(answers) == 2


def test_expired_credentials(account: Simulated) -> None:
    account.fault("sts", "*", "ExpiredToken", "The security token included in the request is expired", 403)
    answers = account.answers()
    assert "ExpiredToken" in answers[0].found
    _says_once_that_the_rest_is_not_asked(answers)
    assert exit_code(answers) == 2


def test_credentials_that_end_while_it_asks(account: Simulated) -> None:
    account.fault("ssm", "*", "ExpiredTokenException", "The security token included in the request is expired", 403)
    answers = account.answers()
    assert [answer.verdict for answer in answers[-2:]] == [Verdict.CANT_TELL] * 2
    assert "p5.48xlarge" in [answer.subject for answer in answers]
    assert answers[-1].found.startswith("not asked: AMI, Kubernetes version, ")
    assert exit_code(answers) == 2


def test_no_network(monkeypatch: pytest.MonkeyPatch, account: Simulated) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    answers = list(run(NEEDS, Account(REGION, boto3.Session(), attempts=1)))
    assert "can't be reached" in answers[0].found
    _says_once_that_the_rest_is_not_asked(answers)
    assert exit_code(answers) == 2


def test_every_question_is_a_read_that_aws_has() -> None:
    session = botocore.session.get_session()
    actions = _actions()
    for service in {service for service, _ in PERMISSIONS}:
        names = {xform_name(name): name for name in session.get_service_model(service).operation_names}
        for operation in [operation for owner, operation in PERMISSIONS if owner == service]:
            assert names[operation].startswith(("Get", "Describe", "List"))
            prefix, action = PERMISSIONS[service, operation].split(":")
            assert action.lower() in actions[prefix]["Actions"]


def _actions() -> dict[str, dict[str, dict[str, object]]]:
    """AWS's list of IAM actions, as cfn-lint ships it."""
    file = Path(cfnlint.__file__).parent / "data" / "AdditionalSpecs" / "Policies.json"
    return json.loads(file.read_bytes())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with stack local and its rendered needs."""
    shutil.copy(ROOT / "Pulumi.local.yaml", tmp_path)
    (tmp_path / "manifests/local").mkdir(parents=True)
    shutil.copy(ROOT / "manifests/local/account.json", tmp_path / "manifests/local")
    return tmp_path


def test_needs_are_read_as_rendered(project: Path) -> None:
    assert read(project, "local").cluster.name == "srvmod-local"


def test_needs_of_changed_settings_are_refused(project: Path) -> None:
    file = project / "Pulumi.local.yaml"
    file.write_text(file.read_text().replace("sessions: 16", "sessions: 17"))
    with pytest.raises(NeedsError, match=r"has changed since .* fix: srvmod render --env local"):
        read(project, "local")


def test_a_comment_changes_no_needs(project: Path) -> None:
    file = project / "Pulumi.local.yaml"
    file.write_text("# another comment\n" + file.read_text())
    read(project, "local")


def test_other_broken_projects(project: Path) -> None:
    with pytest.raises(NeedsError, match="allowed: local"):
        read(project, "prod")
    needs = project / "manifests/local/account.json"
    needs.write_text(needs.read_text().replace('"accountId"', '"account"'))
    with pytest.raises(NeedsError, match="accountId"):
        read(project, "local")
    needs.unlink()
    with pytest.raises(NeedsError, match="is missing; fix: srvmod render"):
        read(project, "local")


APP = typer.Typer()
APP.command()(preflight)


def call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(APP, list(words))
    return done.exit_code, done.output


def test_an_account_that_is_not_aws_is_told(account: Simulated, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`eval "$(srvmod local env)"` leads every question of that shell to the simulated account."""
    monkeypatch.setattr("srvmod.ops.preflight.account.Account", lambda region: account.aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:5000")
    done = CliRunner().invoke(APP, ["--env", "local", "--json", "--root", str(project)])
    assert done.stderr.splitlines()[0] == "AWS_ENDPOINT_URL is set: http://127.0.0.1:5000 is asked, not AWS"
    assert json.loads(done.stdout)["environment"] == "local"


def test_the_command_answers_in_json(account: Simulated, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the account's clients again: making them takes longer than all questions
    monkeypatch.setattr("srvmod.ops.preflight.account.Account", lambda region: account.aws)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # else it is told, see above
    code, output = call("--env", "local", "--json", "--root", str(project))
    answer = json.loads(output)
    assert code == answer["exitCode"] == 1  # neither weights' key list nor the secret of this stack is there
    assert answer["accountId"] == "123456789012"
    verdicts = {entry["subject"]: entry["verdict"] for entry in answer["answers"]}
    assert verdicts["account"] == "ok"
    assert verdicts["secret srvmod-local/api-keys"] == "will fail"


def test_the_table_shows_what_to_do() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    fix = "aws secretsmanager create-secret --name x --secret-string '{...}' " + "and more " * 20
    show(NEEDS, [will_fail("secret x", "[not] there", "a secret", fix), ok("zones", "a", "a")], console)
    text = console.export_text()
    assert "will fail: secret x" in text
    assert fix.strip() in text  # in one line, to be copied
    assert "[not] there" in text
    assert "1 ok, 1 will fail, 0 can't tell" in text
    assert text.rstrip().endswith("case would fail: do first what stands under 'will fail'")


def test_what_will_fail_stands_last() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    show(NEEDS, [will_fail("a", "no", "x", "do this"), cant_tell("b", "silent", "x", "ask again")], console)
    text = console.export_text()
    assert text.index("ask again") < text.index("do this")


def test_the_policy_allows_every_question_and_nothing_else(project: Path) -> None:
    code, output = call("--env", "local", "--permissions", "--root", str(project))
    statements = json.loads(output)["Statement"]
    assert code == 0
    assert sorted(action for each in statements for action in each["Action"]) == sorted(set(PERMISSIONS.values()))
    bucket = [each["Resource"] for each in statements if each["Action"] == ["s3:ListBucket"]]
    assert bucket == [f"arn:aws:s3:::{read(project, 'local').weights.bucket}"]


def test_the_command_names_a_project_that_is_not_ready(project: Path) -> None:
    code, output = call("--env", "none", "--root", str(project))
    assert code == 3
    assert "no such environment" in output
