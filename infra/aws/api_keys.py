"""API keys of the gateway's clients: kept in AWS Secrets Manager, where they are rotated and every read is audited."""

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

LEAST_KEY_LENGTH = 20


def api_keys(secret: str, clients: Sequence[str], provider: aws.Provider) -> pulumi.Output[Mapping[str, str]]:
    """Keys by client, as a secret, read from the secret's current version: a JSON object of client to key.

    The secret exists before the stack: `aws secretsmanager create-secret --name NAME --secret-string '{...}'`.
    """
    version = aws.secretsmanager.get_secret_version_output(
        secret_id=secret, opts=pulumi.InvokeOutputOptions(provider=provider)
    )
    return pulumi.Output.secret(version.secret_string).apply(lambda text: checked(secret, clients, text))


def checked(secret: str, clients: Sequence[str], text: str) -> Mapping[str, str]:
    """The keys: one for each client, none for anyone else, none short or shared. Raises ValueError; shows no key."""
    fix = f'aws secretsmanager put-secret-value --secret-id {secret} --secret-string \'{{"CLIENT": "KEY", ...}}\''
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise ValueError(f"secret {secret}: not a JSON object of client to key; fix: {fix}")
    if set(keys) != set(clients):
        raise ValueError(
            f"secret {secret} has keys for {sorted(keys)}; allowed: exactly gateway.apiClients {sorted(clients)}; "
            f"fix: {fix}"
        )
    short = sorted(client for client, key in keys.items() if len(key) < LEAST_KEY_LENGTH)
    if short:
        raise ValueError(
            f"secret {secret}: the keys of {short} are short; allowed: at least {LEAST_KEY_LENGTH} characters; "
            f"fix: {fix}"
        )
    if len(set(keys.values())) < len(keys):
        raise ValueError(f"secret {secret}: two clients have the same key; allowed: one key per client; fix: {fix}")
    return keys
