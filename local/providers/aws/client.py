"""boto3 clients of the simulated AWS, and refusals that name the operation and its arguments."""

from __future__ import annotations

import json
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_MISSING = re.compile(r"NotFound|NoSuch|NonExistent|DoesNotExist|does not exist|^404$")
_LONGEST = 80


class ConfigError(Exception):
    """The provider can't be set up: which setting, and what it must be."""


class Refused(Exception):  # noqa: N818 - it is AWS that refuses
    """A call that the (simulated) AWS or botocore's validation turned down."""

    def __init__(self, service: str, operation: str, params: Mapping[str, Any], code: str, reason: str) -> None:
        shown = ", ".join(f"{k}={_short(v)}" for k, v in params.items())
        super().__init__(f"{service} {operation}({shown}) refused: {code}: {reason}")
        self.code = code

    @property
    def missing(self) -> bool:
        """Whether the thing that was asked for isn't there."""
        return bool(_MISSING.search(self.code))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


@dataclass
class Aws:
    """One account and region of the simulated AWS. Call it: ``aws("ec2", "create_vpc", CidrBlock=…)``."""

    region: str
    endpoint: str
    account: str = ""
    default_tags: Mapping[str, str] = field(default_factory=dict)
    access_key: str | None = None
    secret_key: str | None = None
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _session: Session | None = field(default=None, repr=False)

    def client(self, service: str) -> Any:
        """The client of a service, made once."""
        with self._lock:
            if service not in self._clients:
                session = self._session
                if session is None:
                    session = self._session = Session(
                        aws_access_key_id=self.access_key,
                        aws_secret_access_key=self.secret_key,
                        region_name=self.region,
                    )
                config = Config(retries={"max_attempts": 2}, max_pool_connections=16, connect_timeout=5, proxies={})
                self._clients[service] = session.client(service, endpoint_url=self.endpoint, config=config)
            return self._clients[service]

    def __call__(self, service: str, operation: str, /, **params: Any) -> dict[str, Any]:
        """Call an operation; arguments that are None aren't sent. Raises Refused."""
        given = {k: v for k, v in params.items() if v is not None}
        try:
            answer: dict[str, Any] = getattr(self.client(service), operation)(**given)
        except ClientError as error:
            told = error.response.get("Error", {})
            raise Refused(
                service, operation, given, told.get("Code", "Unknown"), told.get("Message", str(error))
            ) from error
        except BotoCoreError as error:
            raise Refused(service, operation, given, type(error).__name__, str(error)) from error
        return answer

    def tags(self, props: Mapping[str, Any]) -> dict[str, str]:
        """A resource's tags with the provider's default tags."""
        return {**self.default_tags, **props.get("tags", {})}


_READS = frozenset({
    "region", "endpoints", "accessKey", "secretKey", "allowedAccountIds", "defaultTags", "version",
    "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation", "skipRequestingAccountId",
    "s3UsePathStyle",
})  # fmt: skip


def configure(settings: Mapping[str, Any]) -> Aws:
    """An account from the provider's settings and the environment. Raises ConfigError.

    Only a simulation is ever called: without an endpoint, or with one that doesn't say that it simulates, this
    fails, so that no real account can be reached by mistake.
    """
    settings = {k: _plain(v) for k, v in settings.items() if v != ""}
    if unread := sorted(set(settings) - _READS):
        raise ConfigError(f"provider setting {', '.join(unread)} isn't handled by the simulated aws provider")
    region = settings.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise ConfigError("no region: set aws:region in the stack's configuration, or AWS_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint:
        raise ConfigError("AWS_ENDPOINT_URL isn't set: this is the simulated aws provider, it never calls real AWS")
    account = _account(endpoint)
    allowed = settings.get("allowedAccountIds")
    if allowed and account not in allowed:
        raise ConfigError(f"allowedAccountIds {allowed} don't have the account {account} of {endpoint}")
    tags = (settings.get("defaultTags") or {}).get("tags", {})
    return Aws(region, endpoint, account, tags, settings.get("accessKey"), settings.get("secretKey"))


def _plain(value: Any) -> Any:
    """Provider settings that aren't strings arrive as JSON text."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        return json.loads(value)
    return value


def _account(endpoint: str) -> str:
    url = f"{endpoint.rstrip('/')}/_srvmod/health"
    try:
        # whatever proxy the user has: the simulation is on this machine
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, timeout=10) as answer:
            if answer.headers.get("x-srvmod-simulated") == "true":
                return str(json.loads(answer.read())["account"])
    except (urllib.error.URLError, OSError, ValueError, KeyError) as error:
        raise ConfigError(f"no simulated AWS answers at AWS_ENDPOINT_URL={endpoint}: {error}") from error
    raise ConfigError(f"AWS_ENDPOINT_URL={endpoint} isn't the simulated AWS of srvmod: it doesn't say so")
