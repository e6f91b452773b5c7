"""One simulated AWS in this process, a small engine in front of the provider, and boto3 clients."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session

ACCOUNT = "123456789012"
REGION = "us-east-1"
ENDPOINT = ("https://127.0.0.1:6443", "UEVN")
from moto.core.base_backend import BackendDict  # noqa: E402

from srvmod.local.aws.serve import Server, serve  # noqa: E402
from srvmod.local.providers.aws.servicer import AwsProvider  # noqa: E402
from srvmod.local.providers.values import read, write  # noqa: E402


class Aborted(Exception):  # noqa: N818 - what grpc does, not a failure of the test
    """The RPC ended with an error."""


class Context:
    """grpc's context, as far as the provider uses it."""

    def __init__(self) -> None:
        self.trailers: Any = ()

    def abort(self, code: Any, details: str) -> None:
        raise Aborted(details)

    def set_trailing_metadata(self, trailers: Any) -> None:
        self.trailers = trailers

    def add_callback(self, callback: Callable[[], None]) -> None:
        pass


class Engine:
    """What Pulumi's engine does with a provider, one resource at a time."""

    def __init__(self, provider: AwsProvider) -> None:
        from pulumi.runtime.proto import provider_pb2

        self.pb = provider_pb2
        self.provider = provider
        self.context = Context()

    def urn(self, kind: str, name: str) -> str:
        return f"urn:pulumi:t::demo::{kind}::{name}"

    def check(self, kind: str, name: str, props: dict[str, Any], olds: dict[str, Any] | None = None) -> Any:
        request = self.pb.CheckRequest(
            urn=self.urn(kind, name), news=write(props), olds=write(olds or {}), randomSeed=b"seed"
        )
        return self.provider.Check(request, self.context)

    def problems(self, kind: str, name: str, props: dict[str, Any]) -> list[str]:
        return [f.reason for f in self.check(kind, name, props).failures]

    def create(self, kind: str, name: str, props: dict[str, Any], preview: bool = False) -> dict[str, Any]:
        """{id, inputs, state} of a new resource; fails on Check failures."""
        answer = self.check(kind, name, props)
        assert not answer.failures, [f.reason for f in answer.failures]
        request = self.pb.CreateRequest(urn=self.urn(kind, name), properties=answer.inputs, preview=preview)
        made = self.provider.Create(request, self.context)
        return {
            "id": made.id,
            "inputs": read(answer.inputs),
            "state": read(made.properties),
            "kind": kind,
            "name": name,
        }

    def diff(self, found: dict[str, Any], props: dict[str, Any], ignore: tuple[str, ...] = ()) -> Any:
        news = read(self.check(found["kind"], found["name"], props, found["inputs"]).inputs)
        return self.provider.Diff(
            self.pb.DiffRequest(
                id=found["id"], urn=self.urn(found["kind"], found["name"]), olds=write(found["state"]),
                old_inputs=write(found["inputs"]), news=write(news), ignoreChanges=list(ignore),
            ), self.context,
        )  # fmt: skip

    def update(self, found: dict[str, Any], props: dict[str, Any], preview: bool = False) -> dict[str, Any]:
        news = self.check(found["kind"], found["name"], props, found["inputs"]).inputs
        request = self.pb.UpdateRequest(
            id=found["id"], urn=self.urn(found["kind"], found["name"]), olds=write(found["state"]),
            old_inputs=write(found["inputs"]), news=news, preview=preview,
        )  # fmt: skip
        made = self.provider.Update(request, self.context)
        return {**found, "inputs": read(news), "state": read(made.properties)}

    def refresh(self, found: dict[str, Any]) -> dict[str, Any] | None:
        """The resource as it is now; None when it is gone."""
        request = self.pb.ReadRequest(
            id=found["id"], urn=self.urn(found["kind"], found["name"]), properties=write(found["state"]),
            inputs=write(found["inputs"]),
        )  # fmt: skip
        answer = self.provider.Read(request, self.context)
        if not answer.id:
            return None
        return {**found, "inputs": read(answer.inputs), "state": read(answer.properties)}

    def delete(self, found: dict[str, Any]) -> None:
        self.provider.Delete(
            self.pb.DeleteRequest(
                id=found["id"], urn=self.urn(found["kind"], found["name"]), properties=write(found["state"]),
                old_inputs=write(found["inputs"]),
            ), self.context,
        )  # fmt: skip

    def invoke(self, token: str, args: dict[str, Any]) -> dict[str, Any]:
        request = self.pb.InvokeRequest(tok=token, args=write(args))
        return read(getattr(self.provider.Invoke(request, self.context), "return"))


def start(state: Path | None = None, endpoint: tuple[str, str] | None = ENDPOINT, **more: Any) -> Server:
    """A simulated AWS with nothing in it, as a new process would have it."""
    BackendDict.reset()
    return serve(state=state, account=ACCOUNT, endpoint=endpoint, **more).start()


_SESSION = Session("AKIATEST", "secret", region_name=REGION)


def clients(server: Server, key: str = "AKIATEST") -> Callable[[str], Any]:
    """client(service) for a server; each is made once, since a client of EC2 takes half a second and 30 MB. `key` is
    the caller's access key."""

    @lru_cache
    def client(service: str) -> Any:
        return _SESSION.client(service, endpoint_url=server.url, aws_access_key_id=key, aws_secret_access_key="secret")

    return client


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(server: Server) -> Callable[[str], Any]:
    """client("ec2") of the simulated AWS."""
    return clients(server)


@pytest.fixture(scope="module")
def engine(server: Server) -> Iterator[Engine]:
    """The provider, configured for the simulated AWS."""
    from pulumi.runtime.proto import provider_pb2 as pb

    given = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret"}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    provider = AwsProvider()
    provider.Configure(pb.ConfigureRequest(args=write({"region": REGION})), Context())
    yield Engine(provider)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def admin(server: Server, name: str, body: Any) -> Any:
    """POST to the simulation's own endpoint; (status, answer)."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        f"{server.url}/_srvmod/{name}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
