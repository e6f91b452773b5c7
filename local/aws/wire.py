"""From an HTTP request to an AWS call, and from a result or an error back to HTTP.

Requests are read and answers are written after botocore's own service models, so what a real SDK sends is what
the handlers see, and a real SDK understands every answer and every error.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import botocore.session
from botocore.exceptions import UnknownServiceError
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import SerializationContext, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.exceptions import HTTPException

HTTP_NOT_IMPLEMENTED = 501
SIGNING_NAMES = {
    # signing name in the credential scope -> service name of botocore
    "servicequotas": "service-quotas",
    "monitoring": "cloudwatch",
    "elasticloadbalancing": "elbv2",
}
_SCOPE = re.compile(r"Credential=(?P<key>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
_PRESIGNED = re.compile(r"^(?P<key>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request$")


class AwsError(Exception):
    """An error answer of AWS: ``code`` as the SDKs know it, HTTP ``status``, and a message that names the cause."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Answer:
    """A finished HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One AWS API call as it came over the wire. ``operation`` is None when the model doesn't know it."""

    service: str
    operation: str | None
    region: str
    access_key: str
    agent: str
    environ: dict[str, Any]
    body: bytes

    @property
    def label(self) -> str:
        return f"{self.service}:{self.operation or '?'}"

    def request(self) -> Request:
        """A fresh request over the same bytes; the body may be read more than once."""
        return Request({**self.environ, "wsgi.input": io.BytesIO(self.body)})


def read_body(environ: dict[str, Any]) -> bytes:
    """The whole request body, and ``environ`` changed so that later readers get exactly these bytes."""
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH")
    if length:
        body = stream.read(int(length))
    elif "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
        body = stream.read()
    else:
        body = b""
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ.pop("wsgi.input_terminated", None)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def read_call(environ: dict[str, Any], body: bytes) -> Call:
    """Which call this request is. Unsigned requests belong to S3, as at AWS's public endpoints."""
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if scope is None:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        scope = _PRESIGNED.match(query.get("X-Amz-Credential", [""])[0])
    service = SIGNING_NAMES.get(scope["service"], scope["service"]) if scope else "s3"
    return Call(
        service=service,
        operation=_operation(service, environ, body),
        region=scope["region"] if scope else "us-east-1",
        access_key=scope["key"] if scope else "",
        agent=_product(environ.get("HTTP_USER_AGENT", "")),
        environ=environ,
        body=body,
    )


def _product(agent: str) -> str:
    """The program behind a user agent: an ``app/NAME`` or the first product that isn't an SDK."""
    for word in agent.split():
        name = word.split("/")[0]
        if name == "app":
            return word.split("/", 1)[1]
        if name and not name.lower().startswith(("aws-sdk", "boto", "md", "ua", "os", "lang", "api", "m", "cfg")):
            return word
    return agent.split("/", maxsplit=1)[0] if agent else ""


def _operation(service: str, environ: dict[str, Any], body: bytes) -> str | None:
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return target.split(".")[-1]
    content_type = environ.get("CONTENT_TYPE", "")
    if content_type.startswith("application/x-www-form-urlencoded") or "Action=" in environ.get("QUERY_STRING", ""):
        values = parse_qs(body.decode("utf-8", "replace")) | parse_qs(environ.get("QUERY_STRING", ""))
        if action := values.get("Action"):
            return action[0]
    try:
        request = Request({**environ, "wsgi.input": io.BytesIO(body)})
        return str(get_service_router(service).match(request)[0].name)
    except (HTTPException, NotImplementedError, UnknownServiceError):
        return None


def read_params(call: Call) -> dict[str, Any]:
    """The call's arguments, by the names of the service model."""
    model = get_service_model(call.service)
    request = call.request()
    operation, path_params = get_service_router(call.service).match(request)
    protocol = determine_request_protocol(model, request.content_type)
    parser = PROTOCOL_PARSERS[protocol](operation)
    parsed: dict[str, Any] = parser.parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": path_params,
        }
    )
    return {name: value for name, value in parsed.items() if value is not None}


def write_result(call: Call, result: Mapping[str, Any]) -> Answer:
    """``result`` (by the model's names) as the service would send it."""
    model = get_service_model(call.service)
    operation = model.operation_model(str(call.operation))
    protocol = determine_request_protocol(model, call.environ.get("CONTENT_TYPE"))
    serializer = get_serializer_class(call.service, protocol)(operation, SerializationContext(request_id(call)))
    response = serializer.serialize(dict(result))
    body = response["body"]
    raw = body.encode() if isinstance(body, str) else bytes(body)
    return Answer(int(response["status_code"]), raw, {k: str(v) for k, v in response["headers"].items()})


def request_id(call: Call) -> str:
    """An id that is the same for the same request, so that replays and tests can compare answers."""
    digest = hashlib.sha256(f"{call.service}:{call.operation}:".encode() + call.body).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


@lru_cache
def _protocol(service: str) -> str:
    try:
        metadata = botocore.session.get_session().get_service_model(service).metadata
    except UnknownServiceError:
        return "json"
    protocols: Iterable[str] = metadata.get("protocols") or [metadata["protocol"]]
    return next(p for p in (*protocols, metadata["protocol"]) if p in {"json", "rest-json", "query", "ec2", "rest-xml"})


def write_error(call: Call, error: AwsError) -> Answer:
    """``error`` in the shape that the service's SDKs read."""
    rid, code, message = request_id(call), escape(error.code), escape(error.message)
    protocol = _protocol(call.service)
    if "x-amz-json" in call.environ.get("CONTENT_TYPE", ""):
        protocol = "json"
    if protocol in {"json", "rest-json"}:
        body = json.dumps({"__type": error.code, "message": error.message, "Message": error.message})
        kind = "application/x-amz-json-1.1" if protocol == "json" else "application/json"
        return Answer(
            error.status, body.encode(), {"Content-Type": kind, "x-amzn-errortype": error.code, "x-amzn-requestid": rid}
        )
    if protocol == "ec2":
        inner = f"<Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        body = f"<Response>{inner}<RequestID>{rid}</RequestID></Response>"
    elif protocol == "query":
        inner = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        body = f"<ErrorResponse>{inner}<RequestId>{rid}</RequestId></ErrorResponse>"
    else:
        body = f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>{rid}</RequestId></Error>"
    return Answer(error.status, f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode(), {"Content-Type": "text/xml"})


def encode_token(position: int) -> str:
    """A page token of ours."""
    return base64.urlsafe_b64encode(str(position).encode()).decode()


def decode_token(token: str | None) -> int:
    """The position behind a page token; an unreadable token is InvalidNextToken."""
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token.encode()))
    except ValueError as error:
        raise AwsError("InvalidNextToken", f"nextToken {token!r} wasn't given out by this service") from error


def page(items: list[Any], params: Mapping[str, Any], default: int = 100) -> tuple[list[Any], str | None]:
    """One page of ``items`` after the request's maxResults and nextToken, with the token of the next one."""
    size = int(params.get("maxResults") or params.get("MaxResults") or default)
    start = decode_token(params.get("nextToken") or params.get("NextToken"))
    end = start + size
    return items[start:end], encode_token(end) if end < len(items) else None
