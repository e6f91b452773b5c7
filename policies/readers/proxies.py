"""Routes to Services and the policies of proxies: what they say about deadlines, buffering and compression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.policies.facts import Fact, Known, Maybe, Policy, Route, Service, Setting, Unknown
from srvmod.policies.readers.envoy import settings_anywhere
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.yamltext import BadText, documents

NGINX = "nginx.ingress.kubernetes.io/"
SNIPPETS = ("configuration-snippet", "server-snippet", "location-snippets", "server-snippets")
ALB = "alb.ingress.kubernetes.io/load-balancer-attributes"
NLB = "service.beta.kubernetes.io/"
IDLE_ATTRIBUTE = re.compile(r"(?:idle_timeout\.timeout_seconds|tcp\.idle_timeout\.seconds)\s*=\s*([0-9]+)")
PASSED = re.compile(r"proxy_pass\s+https?://([A-Za-z0-9.-]+)")
UPSTREAM = re.compile(r"^\s*server\s+([A-Za-z][A-Za-z0-9.-]*)(?::\d+)?[^{;]*;", re.MULTILINE)
ADDRESS = re.compile(r"address:\s*[\"']?([A-Za-z][A-Za-z0-9.-]*)")
POLICIES = {
    "BackendTrafficPolicy", "ClientTrafficPolicy", "EnvoyExtensionPolicy", "EnvoyPatchPolicy", "EnvoyFilter",
    "EnvoyProxy", "DestinationRule",
}  # fmt: skip
ROUTES = {"HTTPRoute", "GRPCRoute", "Ingress", "VirtualService"}


def named(topic: str, fact: Maybe[str]) -> Iterator[Setting]:
    """A setting, where it is said at all."""
    if fact is not None:
        yield Setting(topic, fact)


def routes(thing: KubeObject) -> Iterator[Route]:
    """One route per rule of the object."""
    spec = thing.root["spec"]
    if thing.kind in {"HTTPRoute", "GRPCRoute"}:
        for rule in spec["rules"].items():
            services = [
                one["name"].raw()
                for one in rule["backendRefs"].items()
                if one["kind"].raw() in {"", "Service", "InferencePool"}
            ]
            found = [
                *named("request-timeout", rule.at("timeouts", "request").string()),
                *named("backend-timeout", rule.at("timeouts", "backendRequest").string()),
            ]
            paths = [match.at("path", "value").raw() for match in rule["matches"].items()]
            parents = tuple(one["name"].raw() for one in spec["parentRefs"].items())
            yield _route(thing, rule, services, found, paths, parents)
    elif thing.kind == "VirtualService":
        for rule in spec["http"].items():
            services = [one.at("destination", "host").raw().split(".")[0] for one in rule["route"].items()]
            found = [
                *named("deadline", rule["timeout"].string()),
                *named("retry-timeout", rule.at("retries", "perTryTimeout").string()),
            ]
            paths = [p.raw() for match in rule["match"].items() for _, p in match["uri"].entries()]
            yield _route(thing, rule, services, found, paths, ())
    elif thing.kind == "Ingress":
        found = list(_ingress(thing.root.at("metadata", "annotations")))
        for rule in spec["rules"].items():
            for path in rule.at("http", "paths").items():
                service = path.at("backend", "service", "name").raw() or path.at("backend", "serviceName").raw()
                yield _route(thing, path, [service], found, [path["path"].raw()], ())
        default = spec.at("defaultBackend", "service", "name")
        if default:
            yield _route(thing, default, [default.raw()], found, ["/"], ())


def _route(  # noqa: PLR0917 - the parts of one object
    thing: KubeObject,
    cursor: Cursor,
    services: list[str],
    found: list[Setting],
    paths: list[str],
    parents: tuple[str, ...],
) -> Route:
    return Route(
        place=cursor.place,
        kind=thing.kind,
        name=thing.name,
        namespace=thing.namespace,
        services=tuple(name for name in services if name),
        paths=tuple(path for path in paths if path),
        settings=tuple(found),
        parents=parents,
    )


def _ingress(annotations: Cursor) -> Iterator[Setting]:
    for key, child in annotations.entries():
        short = key.rpartition("/")[2]
        if key.startswith(NGINX) and short in {"proxy-buffering", "proxy-read-timeout", "proxy-send-timeout"}:
            topic = "buffering" if short == "proxy-buffering" else "idle-timeout"
            yield from named(topic, child.string())
        elif key == "nginx.org/proxy-buffering":
            yield from named("buffering", child.string())
        elif key == "nginx.org/proxy-read-timeout":
            yield from named("idle-timeout", child.string())
        elif short in SNIPPETS and ("nginx" in key):
            yield from nginx_settings(child)
        elif key == ALB:
            yield from _idle(child)


def _idle(cursor: Cursor) -> Iterator[Setting]:
    match = IDLE_ATTRIBUTE.search(cursor.raw())
    if match:
        yield Setting("idle-timeout", Known(match[1], cursor.place, match[0]))


def nginx_settings(cursor: Cursor) -> Iterator[Setting]:
    """Directives of nginx that hold tokens back, comments left out."""
    for offset, raw in enumerate(cursor.raw().splitlines()):
        line = raw.split("#", 1)[0]
        place = cursor.place
        node_line = getattr(cursor.node, "line", None)
        if getattr(cursor.node, "block", False) and node_line is not None:
            place = place.at(node_line + 1 + offset, place.path)
        if match := re.search(r"\bproxy_buffering\s+(\w+)", line):
            yield Setting("buffering", Known(match[1], place, match[0]))
        if re.search(r"\bgzip_types\b[^;]*(text/event-stream|\*)", line):
            yield Setting("compression", Known("text/event-stream", place, line.strip()))
        if match := re.search(r"\bproxy_read_timeout\s+([0-9]+[smh]?)", line):
            yield Setting("idle-timeout", Known(match[1], place, match[0]))


def config_map(thing: KubeObject) -> Iterator[Policy]:
    """Proxies that are configured by files: nginx and Envoy. `targets` are the hosts that they pass requests to."""
    for _, child in thing.root["data"].entries():
        text = child.raw()
        found: list[Setting] = []
        hosts: set[str] = set()
        if "proxy_pass" in text or "fastcgi_pass" in text:
            lines = [line.split("#", 1)[0] for line in text.splitlines()]
            hosts = {host for line in lines for host in PASSED.findall(line)} | set(UPSTREAM.findall("\n".join(lines)))
            found = list(nginx_settings(child))
            if not any(one.topic == "buffering" for one in found):
                at = next((i for i, line in enumerate(lines) if "proxy_pass" in line), 0)
                default = Known("on", place_in_text(child, at), "nginx's default")
                found.append(Setting("buffering", default))
        elif "static_resources" in text or "http_filters" in text:
            try:
                roots = [document.root for document in documents(text)]
            except BadText:
                continue
            inner = [Cursor(node, child.place.at(None, child.place.path)) for node in roots]
            found = [moved(one, child) for cursor in inner for one in settings_anywhere(cursor)]
            hosts = set(ADDRESS.findall(text))
        if found:
            targets = tuple(("Service", host.split(".")[0]) for host in sorted(hosts))
            yield Policy(child.place, thing.kind, thing.name, thing.namespace, targets, tuple(found))


def moved(setting: Setting, text: Cursor) -> Setting:
    """A setting of a document inside a text, with its place in the file."""
    value = setting.value
    place = place_in_text(text, (value.place.line or 1) - 1)
    if isinstance(value, Unknown):
        return Setting(setting.topic, Unknown(value.reason, place))
    return Setting(setting.topic, Known(value.value, place, value.text))


def service(thing: KubeObject) -> Service:
    """A Service and its load balancer's attributes."""
    spec = thing.root["spec"]
    found: list[Setting] = []
    for key, child in thing.root.at("metadata", "annotations").entries():
        if key.startswith(f"{NLB}aws-load-balancer-") and "attributes" in key:
            found.extend(_idle(child))
        elif key == f"{NLB}aws-load-balancer-connection-idle-timeout":
            found.extend(named("idle-timeout", child.string()))
    return Service(thing.place, thing.name, thing.namespace, spec["selector"].texts(), tuple(found))


def policy(thing: KubeObject) -> Policy:
    """A policy and what it applies to."""
    spec = thing.root["spec"]
    references = [*spec["targetRefs"].items(), spec["targetRef"]]
    targets = tuple((one["kind"].raw(), one["name"].raw()) for one in references if one)
    return Policy(
        thing.place, thing.kind, thing.name, thing.namespace, targets, tuple(_policy_settings(thing.kind, spec))
    )


def _policy_settings(kind: str, spec: Cursor) -> Iterator[Setting]:
    http = spec.at("timeout", "http")
    if kind == "BackendTrafficPolicy":
        yield from named("request-timeout", http["requestTimeout"].string())
        yield from named("stream-idle-timeout", http["streamIdleTimeout"].string())
        yield from named("max-stream-duration", http["maxStreamDuration"].string())
        yield from named("retry-timeout", spec.at("retry", "perRetry", "timeout").string())
        for one in (*spec["compression"].items(), *spec["compressor"].items()):
            # Envoy's compressor leaves event streams alone unless told otherwise; Envoy Gateway can't tell it.
            types = [item.raw() for item in one["contentType"].items()]
            if any("event-stream" in text for text in types):
                yield Setting("compression", Known("text/event-stream", one.place))
    elif kind == "ClientTrafficPolicy":
        yield from named("stream-idle-timeout", http["streamIdleTimeout"].string())
        limit = spec.at("connection", "connectionLimit")
        yield from named("max-stream-duration", limit["maxStreamDuration"].string())
        yield from named("connection-duration", limit["maxConnectionDuration"].string())
    elif kind == "EnvoyExtensionPolicy":
        for one in spec["extProc"].items():
            body = one.at("processingMode", "response", "body")
            if body:
                fact: Fact[str] = body.string() or Unknown("isn't text", body.place)
                yield Setting("ext-proc-body", fact)
    elif kind in {"EnvoyFilter", "EnvoyPatchPolicy", "EnvoyProxy"}:
        yield from settings_anywhere(spec)
