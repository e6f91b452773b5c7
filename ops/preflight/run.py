"""Runs the checks. Whatever a check meets becomes an answer; none stops the others."""

from collections.abc import Callable, Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, CredentialsError, NoAnswerError
from srvmod.ops.preflight.answers import Answer, Verdict, cant_tell, will_fail
from srvmod.ops.preflight.checks import (
    credentials,
    edge,
    endpoint,
    images,
    keys,
    kubernetes,
    offerings,
    quotas,
    reservations,
    roles,
    weights,
)

Check = Callable[[AccountNeeds, Account], Iterator[Answer]]

CHECKS: dict[str, Check] = {
    "region": credentials.region,
    "quota of the pool": quotas.pool,
    "quota of system nodes": quotas.system,
    "quota of Elastic IPs": quotas.addresses,
    "quota of VPCs": quotas.vpcs,
    "instance type": offerings.offered,
    "subnets": offerings.subnets,
    "reservations": reservations.reservations,
    "AMI": images.alias,
    "Kubernetes version": kubernetes.version,
    "add-ons": kubernetes.addons,
    "weights": weights.complete,
    "KMS keys": keys.usable,
    "service-linked roles": roles.service_linked,
    "admins": roles.admins,
    "API keys": edge.api_keys,
    "certificate": edge.certificate,
    "Kubernetes API": endpoint.reachable,
}
"""Asked only once the account is known to be the right one."""


def run(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Answers, one by one."""
    answers = list(_answers("account", credentials.account, needs, aws))
    yield from answers
    if any(answer.verdict is not Verdict.OK for answer in answers):
        for name in CHECKS:
            yield cant_tell(name, "not asked", f"credentials of account {needs.account_id}", "see account")
        return
    for name, check in CHECKS.items():
        yield from _answers(name, check, needs, aws)


def _answers(name: str, check: Check, needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    try:
        yield from check(needs, aws)
    except CredentialsError as error:
        yield will_fail(name, error.why, f"credentials of account {needs.account_id}", error.do)
    except NoAnswerError as error:
        yield cant_tell(name, error.why, "an answer of the account", error.do, error.permission)
