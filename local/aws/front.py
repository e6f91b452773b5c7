"""The WSGI application: what is ours is answered here, the rest goes to moto in the same process."""

from __future__ import annotations

import io
import logging
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from botocore.exceptions import BotoCoreError
from moto.backends import get_backend, list_of_moto_modules
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from srvmod.local.aws import (
    admin,
    bucket_policies,
    capacity,
    determinism,
    eks_access,
    eks_attached,
    eks_cluster,
    images,
    pricing,
    quotas,
)
from srvmod.local.aws.answers import OK, as_json, is_page, length, reason, reason_of
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.journal import Journal, Record, keep_environ
from srvmod.local.aws.wire import (
    HTTP_NOT_IMPLEMENTED,
    Answer,
    AwsError,
    Call,
    read_body,
    read_call,
    read_params,
    write_error,
    write_result,
)
from srvmod.local.aws.world import World

log = logging.getLogger("srvmod.local.aws")

SIMULATED = {"x-srvmod-simulated": "true", "Server": "srvmod-simulated-aws"}
OURS: dict[str, dict[str, Handler]] = {
    "eks": {**eks_cluster.OPERATIONS, **eks_attached.OPERATIONS, **eks_access.OPERATIONS},
    "service-quotas": quotas.OPERATIONS,
    "pricing": pricing.OPERATIONS,
}
ADDED: dict[str, dict[str, Handler]] = {"ec2": capacity.OPERATIONS}
_READS = re.compile(r"(Describe|Get|List|Head|Lookup|Search|Select|BatchGet|Filter|Simulate|Assume|Decode|Verify)")
# messages come and go and are nobody's state; encryption changes nothing
_UNKEPT = {
    ("sqs", o) for o in ("SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch",
                         "ChangeMessageVisibility", "PurgeQueue")
} | {("kms", o) for o in ("Encrypt", "Decrypt", "GenerateDataKey", "ReEncrypt")} | {
    ("logs", "PutLogEvents"), ("events", "PutEvents")
}  # fmt: skip
_WAITS = {("sqs", "ReceiveMessage")}  # long polls: they must not hold the others up
# made before anything else happens in a region: what moto creates by itself (default VPC, managed policies) must not
# take ids out of the seed of the request that happens to come first
CORE = ("ec2", "iam", "kms", "s3", "sqs", "ssm", "sts", "events", "logs", "ecr", "secretsmanager")
_SERVER_ERRORS = range(500, 600)


class Front:
    """One simulated account. Calls that may change something run one at a time, and are journalled before answering."""

    def __init__(self, world: World, journal: Journal | None, access_key: str | None = None) -> None:
        self.world = world
        self.access_key = access_key
        self.calls: Counter[tuple[str, str]] = Counter()
        self.unknown: Counter[str] = Counter()
        self.replayed = 0
        self.lost: str | None = None
        self._journal = journal
        self._lock = threading.RLock()
        self._published: set[str] = set()
        self._prepared: set[tuple[str, str]] = set()
        self._moto = DomainDispatcherApplication(create_backend_app)
        bucket_policies.install()
        if not world.images:
            world.images[:] = images.defaults(world)

    # -- WSGI ---------------------------------------------------------------------------------------------------
    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = self.answer(environ)
        headers = [(k, v) for k, v in answer.headers.items() if k.lower() not in {"content-length", "server"}]
        start_response(f"{answer.status} {reason(answer.status)}", [
            *headers, *SIMULATED.items(), ("Content-Length", length(environ, answer)),
        ])  # fmt: skip
        return [answer.body]

    def answer(self, environ: dict[str, Any]) -> Answer:
        """The answer to one request; never raises."""
        body = read_body(environ)
        path = environ.get("PATH_INFO", "")
        if path.startswith("/moto-api"):
            return as_json({"message": "moto's own API would bypass this simulation's journal; use /_srvmod/"}, 403)
        if path.startswith(admin.PREFIX):
            return self._admin(path.removeprefix(admin.PREFIX), environ, body)
        call = read_call(environ, body)
        self.calls[call.label, call.agent] += 1
        try:
            self._admit(call)
            return self._serve(call)
        except AwsError as error:
            return write_error(call, error)

    def _admit(self, call: Call) -> None:
        if self.access_key is not None and call.access_key and call.access_key != self.access_key:
            raise AwsError("InvalidClientTokenId", "The security token included in the request is invalid", 403)
        for fault in self.world.faults:
            if fault.service == call.service and fault.operation in {call.operation, "*"} and fault.times:
                fault.times -= 1 if fault.times > 0 else 0
                raise AwsError(fault.code, fault.message, fault.status)

    def _serve(self, call: Call) -> Answer:
        key = (call.service, call.operation or "")
        if key in _WAITS:
            return self._run(call)
        with self._lock:
            self._prepare(call.region, call.service)
            if _READS.match(call.operation or "") or key in _UNKEPT:
                return self._run(call)
            return self._change(call.environ, call.body, lambda: self._run(call))

    def _change(self, environ: dict[str, Any], body: bytes, run: Callable[[], Answer]) -> Answer:
        """Run something that may change state, with ids of its own, and write it down when it succeeded."""
        kept, seed, at = keep_environ(environ), secrets.token_hex(16), datetime.now(UTC)
        determinism.begin(seed, at)
        try:
            answer = run()
        finally:
            determinism.end()
        if answer.status in OK and self._journal is not None:
            try:
                self._journal.append(Record(seed, at, answer.status, kept, body))
            except OSError as error:
                log.error("the journal %s can't be written: %s", self._journal.path, error)
                raise AwsError("InternalFailure", f"simulated AWS can't write its journal: {error}", 500) from error
        return answer

    def _run(self, call: Call) -> Answer:
        handler = OURS.get(call.service, {}).get(call.operation or "") or ADDED.get(call.service, {}).get(
            call.operation or ""
        )
        if handler is not None:
            try:
                params = read_params(call)
            except (BotoCoreError, ValueError, KeyError, TypeError) as error:
                raise AwsError("ValidationException", f"{call.label}: the request can't be read: {error}") from error
            return write_result(call, handler(Context(self.world, call.region, call.access_key), params))
        if call.service in OURS:
            raise self._unknown(call)
        answer = self._ask_moto(call)
        if answer.status in _SERVER_ERRORS or is_page(answer):
            raise self._unknown(call, answer)
        return answer

    def _unknown(self, call: Call, answer: Answer | None = None) -> AwsError:
        self.unknown[call.label] += 1
        why = reason_of(answer) if answer else "no such operation here"
        log.warning("not simulated: %s (%s %s): %s", call.label, call.environ["REQUEST_METHOD"],
                    call.environ.get("PATH_INFO"), why)  # fmt: skip
        message = f"simulated AWS of srvmod: {call.label} isn't simulated ({why})"
        return AwsError("NotImplemented", message, HTTP_NOT_IMPLEMENTED)

    def _ask_moto(self, call: Call) -> Answer:
        caught: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            caught.update(status=int(status.split(maxsplit=1)[0]), headers=dict(headers))

        environ = {
            "wsgi.errors": io.StringIO(), "wsgi.version": (1, 0), "wsgi.multithread": True,
            "wsgi.multiprocess": False, "wsgi.run_once": False, **call.environ, "wsgi.input": io.BytesIO(call.body),
        }  # fmt: skip
        try:
            chunks = self._moto(environ, start_response)
            body = b"".join(chunks)
        except Exception as error:  # moto in debug mode lets the exception of a missing operation through
            return Answer(500, f"{type(error).__name__}: {error}".encode(), {"Content-Type": "text/plain"})
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
        return Answer(cast(int, caught["status"]), body, cast(Mapping[str, str], caught["headers"]))

    def _prepare(self, region: str, service: str) -> None:
        """Make what a region and a service have by themselves when they are first used, EKS's AMIs included.

        None of it is journalled, and none of it may take ids out of the seed of the request that comes first.
        """
        wanted = (*CORE, service) if region not in self._published else (service,)
        for name in wanted:
            if (region, name) in self._prepared or name not in list_of_moto_modules():
                continue
            self._prepared.add((region, name))
            determinism.begin(f"{name}/{region}", self.world.started)
            made = get_backend(cast(Any, name))[self.world.account]
            _ = made[region] if region in made else made["aws"]
        if region not in self._published:
            self._published.add(region)
            determinism.seed_system_randomness()
            determinism.begin(f"images/{region}", self.world.started)
            images.publish(Context(self.world, region))
        determinism.end()

    # -- the simulation's own endpoint ----------------------------------------------------------------------------
    def _admin(self, name: str, environ: dict[str, Any], body: bytes) -> Answer:
        if environ["REQUEST_METHOD"] == "GET":
            pages: dict[str, Callable[[], Any]] = {"health": self.health, "calls": self.seen}
            return as_json(pages[name]()) if name in pages else as_json({"message": f"GET: {sorted(pages)}"}, 404)
        region = environ.get("HTTP_X_SRVMOD_REGION", "us-east-1")
        context = Context(self.world, region)
        with self._lock:
            try:
                self._prepare(region, "ec2")
                if name == "faults":  # passing by nature: a restart forgets them
                    return as_json(admin.change(context, name, environ.get("CONTENT_TYPE", ""), body))
                return self._change(
                    environ, body, lambda: as_json(admin.change(context, name, environ.get("CONTENT_TYPE", ""), body))
                )
            except AwsError as error:
                return as_json({"message": error.message}, error.status)

    def health(self) -> dict[str, Any]:
        """What this is, and what became of the state of an earlier run."""
        return {
            "simulation": "srvmod simulated AWS (moto and additions); nothing here is AWS",
            "account": self.world.account,
            "started": self.world.started.isoformat(),
            "endpoint": self.world.endpoint.url if self.world.endpoint else None,
            "replayed": self.replayed,
            "stateLost": self.lost,
            "notSimulated": dict(self.unknown),
        }

    def seen(self) -> list[dict[str, Any]]:
        """Every call so far: service, operation, calling program, how often."""
        return [
            {"service": label.split(":")[0], "operation": label.split(":")[1], "agent": agent, "count": count}
            for (label, agent), count in sorted(self.calls.items())
        ]

    # -- start ----------------------------------------------------------------------------------------------------
    def replay(self) -> None:
        """Run the journal. A request that doesn't end as it did then is noted in `lost`, and the replay stops."""
        self._prepare("us-east-1", "ec2")  # also loads moto's big modules before the first request needs them
        if self._journal is None:
            return
        for number, record in enumerate(self._journal.records(), 1):
            environ = {**record.environ, "wsgi.input": io.BytesIO(record.body)}
            determinism.begin(record.seed, record.at)
            try:
                answer = self._again(environ, record)
            finally:
                determinism.end()
            if answer.status != record.status:
                self.lost = (
                    f"request {number} of the journal ended with {answer.status} instead of {record.status}: "
                    f"{answer.body[:300]!r}; delete {self._journal.path} and run `pulumi refresh`"
                )
                log.error("state lost: %s", self.lost)
                return
            self.replayed = number

    def _again(self, environ: dict[str, Any], record: Record) -> Answer:
        path = environ.get("PATH_INFO", "")
        try:
            if path.startswith(admin.PREFIX):
                region = environ.get("HTTP_X_SRVMOD_REGION", "us-east-1")
                self._prepare(region, "ec2")
                determinism.begin(record.seed, record.at)
                name, kind = path.removeprefix(admin.PREFIX), environ.get("CONTENT_TYPE", "")
                return as_json(admin.change(Context(self.world, region), name, kind, record.body))
            call = read_call(environ, record.body)
            self._prepare(call.region, call.service)
            determinism.begin(record.seed, record.at)
            return self._run(replace(call, environ=environ))
        except AwsError as error:
            return Answer(error.status, error.message.encode())
