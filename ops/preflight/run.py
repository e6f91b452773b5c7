"""Runs the checks. Whatever a check meets becomes an answer; none stops the others."""

from collections.abc import Callable, Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, CredentialsError, NoAnswerError
from srvmod.ops.preflight.answers import Answer, Verdict, cant_tell
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
    "access to the cluster": roles.access,
    "API keys": edge.api_keys,
    "certificate": edge.certificate,
    "Kubernetes API": endpoint.reachable,
}
"""Asked only once the account is known to be the right one."""


def run(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Answers, one by one. Without credentials of the right account nothing more is asked, and one answer says so."""
    left = list(CHECKS)
    try:
        answers = list(_answers("account", credentials.account, needs, aws))
        yield from answers
        if all(answer.verdict is Verdict.OK for answer in answers):
            for name, check in CHECKS.items():
                yield from _answers(name, check, needs, aws)
                left.remove(name)
    except CredentialsError as error:  # also those that end while it asks
        yield cant_tell("account", error.why, f"credentials of account {needs.account_id}", error.do)
    if left:
        yield cant_tell("all other needs", f"not asked: {', '.join(left)}", "an answer about the account above")


def _answers(name: str, check: Check, needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    try:
        yield from check(needs, aws)
    except CredentialsError:
        raise
    except NoAnswerError as error:
        yield cant_tell(name, error.why, "an answer of the account", error.do, error.permission)
