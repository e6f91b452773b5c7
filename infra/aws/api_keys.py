"""API keys of the gateway's clients: kept in AWS Secrets Manager, where they are rotated and every read is audited."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.names import Account

LEAST_KEY_LENGTH = 20
ABSENT = re.compile(r"ResourceNotFound|can't find|couldn't find|could not find|not found", re.IGNORECASE)
"""What Secrets Manager and the provider say of a secret that isn't there or has no value yet."""
DELETED = re.compile(r"marked for deletion|scheduled for deletion", re.IGNORECASE)


class KeysError(pulumi.RunError):
    """The keys can't be used: which secret where, what it should hold, and the command. Ends a program without a
    traceback; shows no key."""


@dataclass(frozen=True)
class KeysSecret:
    """The secret with a key for each client: a JSON object of client to key. It exists before the stack."""

    name: str
    account: Account
    clients: Sequence[str]

    def read(self, provider: aws.Provider) -> pulumi.Output[Mapping[str, str]]:
        """Keys by client, as a secret, from the current version. Raises KeysError."""
        try:
            version = aws.secretsmanager.get_secret_version(
                secret_id=self.name, opts=pulumi.InvokeOptions(provider=provider)
            )
        except Exception as error:  # the SDK has no narrower class for what the provider refuses
            raise self._unreadable(str(error)) from error
        return pulumi.Output.secret(self.checked(version.secret_string))

    def checked(self, text: str) -> Mapping[str, str]:
        """The keys: one for each client, none for anyone else, none short or shared. Raises KeysError."""
        if not text.strip():
            raise self._wrong("is empty")
        try:
            keys = json.loads(text)
        except ValueError:
            raise self._wrong("isn't JSON") from None
        if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
            raise self._wrong("isn't a JSON object of client to key")
        missing, more = sorted(set(self.clients) - set(keys)), sorted(set(keys) - set(self.clients))
        problems = [f"has no key for {', '.join(missing)}"] if missing else []
        problems += [f"has a key for {', '.join(more)}, no client of gateway.apiClients"] if more else []
        short = sorted(client for client, key in keys.items() if len(key) < LEAST_KEY_LENGTH)
        problems += [f"has a short key for {', '.join(short)}"] if short else []
        problems += ["has one key for two clients"] if len(set(keys.values())) < len(keys) else []
        if problems:
            raise self._wrong("; ".join(problems))
        return keys

    def _unreadable(self, answer: str) -> KeysError:
        if DELETED.search(answer):
            restore = f"aws secretsmanager restore-secret --region {self.account.region} --secret-id {self.name}"
            return KeysError(f"{self._place}: is marked for deletion\n  fix: {restore}")
        if ABSENT.search(answer):
            return self._wrong("isn't there, or has no value", self._command("create-secret --name"))
        read = "secretsmanager:GetSecretValue on it, and kms:Decrypt on its key, to whoever deploys"
        return KeysError(f"{self._place}: can't be read: {answer}\n  fix: right credentials; else allow {read}")

    def _wrong(self, problem: str, *before: str) -> KeysError:
        form = json.dumps(dict.fromkeys(self.clients, "KEY"))
        script = "import json, secrets, sys; print(json.dumps({c: secrets.token_urlsafe(32) for c in sys.argv[1:]}))"
        make = f"python3 -c '{script}' {' '.join(self.clients)} > k.json"
        steps = [
            f"new keys, if the clients have none: {make}",
            *before,
            f"{'if the secret is there already: ' if before else ''}{self._command('put-secret-value --secret-id')}",
        ]
        lines = [
            f"{self._place}: {problem}",
            f"  allowed: {form}, a different key of at least {LEAST_KEY_LENGTH} characters for each",
            *(f"  fix {number}: {step}" for number, step in enumerate(steps, 1)),
        ]
        return KeysError("\n".join(lines))

    def _command(self, action: str) -> str:
        return f"aws secretsmanager {action} {self.name} --region {self.account.region} --secret-string file://k.json"

    @property
    def _place(self) -> str:
        return f"secret {self.name} in account {self.account.id}, {self.account.region} (AWS Secrets Manager)"
