"""Routes to Services and the policies of proxies: what they say about deadlines, buffering and compression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from srvmod.policies.facts import Fact, Known, Maybe, Name, Policy, Route, Service, Setting, Unknown
from srvmod.policies.readers import nginx
from srvmod.policies.readers.envoy import lua, settings_anywhere
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.yamltext import BadText, documents

NGINX = "nginx.ingress.kubernetes.io/"
SNIPPETS = ("configuration-snippet", "server-snippet", "location-snippets", "server-snippets")
ALB = "alb.ingress.kubernetes.io/load-balancer-attributes"
NLB = "service.beta.kubernetes.io/"
IDLE_ATTRIBUTE = re.compile(r"(?:idle_timeout\.timeout_seconds|tcp\.idle_timeout\.seconds)\s*=\s*([0-9]+)")
ANNOTATIONS = {
    f"{NGINX}proxy-buffering": "buffering",
    f"{NGINX}proxy-read-timeout": "idle-timeout",
    f"{NGINX}proxy-send-timeout": "idle-timeout",
    "nginx.org/proxy-buffering": "buffering",
    "nginx.org/proxy-read-timeout": "idle-timeout",
    "haproxy.org/timeout-server": "idle-timeout",
    "haproxy-ingress.github.io/timeout-server": "idle-timeout",
    "haproxy.router.openshift.io/timeout": "idle-timeout",
}
"""Annotations of an Ingress by what they set."""
TRAEFIK = "traefik.ingress.kubernetes.io/router.middlewares"
CONTROLLER = {"proxy-buffering": "buffering", "proxy-read-timeout": "idle-timeout"}
"""Keys of ingress-nginx's ConfigMap."""
ADDRESS = re.compile(r"address:\s*[\"']?([A-Za-z][A-Za-z0-9.-]*)")
POLICIES = {
    "BackendTrafficPolicy", "ClientTrafficPolicy", "EnvoyExtensionPolicy", "EnvoyPatchPolicy", "EnvoyFilter",
    "EnvoyProxy", "DestinationRule", "Middleware",
}  # fmt: skip
ROUTES = {"HTTPRoute", "GRPCRoute", "Ingress", "VirtualService", "HTTPProxy", "IngressRoute"}


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
                _named(one, thing)
                for one in rule["backendRefs"].items()
                if one["kind"].raw() in {"", "Service", "InferencePool"}
            ]
            found = [
                *named("request-timeout", rule.at("timeouts", "request").string()),
                *named("backend-timeout", rule.at("timeouts", "backendRequest").string()),
            ]
            paths = [match.at("path", "value").raw() for match in rule["matches"].items()]
            parents = tuple(_named(one, thing, "Gateway") for one in spec["parentRefs"].items())
            yield _route(thing, rule, services, found, paths, parents)
    elif thing.kind == "VirtualService":
        for rule in spec["http"].items():
            services = [of_host(one.at("destination", "host").raw(), thing) for one in rule["route"].items()]
            found = [
                *named("deadline", rule["timeout"].string()),
                *named("retry-timeout", rule.at("retries", "perTryTimeout").string()),
            ]
            paths = [p.raw() for match in rule["match"].items() for _, p in match["uri"].entries()]
            yield _route(thing, rule, services, found, paths, ())
    elif thing.kind == "Ingress":
        annotations = thing.root.at("metadata", "annotations")
        found = list(_ingress(annotations))
        parents = tuple(Name("", one.strip(), "Middleware") for one in annotations[TRAEFIK].raw().split(","))
        for rule in spec["rules"].items():
            for path in rule.at("http", "paths").items():
                service = path.at("backend", "service", "name").raw() or path.at("backend", "serviceName").raw()
                yield _route(thing, path, [Name(thing.namespace, service)], found, [path["path"].raw()], parents)
        default = spec.at("defaultBackend", "service", "name")
        if default:
            yield _route(thing, default, [Name(thing.namespace, default.raw())], found, ["/"], parents)
    elif thing.kind == "HTTPProxy":
        for rule in spec["routes"].items():
            services = [_named(one, thing) for one in rule["services"].items()]
            found = [
                *named("request-timeout", rule.at("timeoutPolicy", "response").string()),
                *named("stream-idle-timeout", rule.at("timeoutPolicy", "idle").string()),
            ]
            paths = [one["prefix"].raw() for one in rule["conditions"].items()]
            yield _route(thing, rule, services, found, paths, ())
    elif thing.kind == "IngressRoute":
        for rule in spec["routes"].items():
            services = [_named(one, thing) for one in rule["services"].items()]
            parents = tuple(_named(one, thing, "Middleware") for one in rule["middlewares"].items())
            paths = re.findall(r"Path(?:Prefix)?\(`([^`]+)`", rule["match"].raw())
            yield _route(thing, rule, services, [], paths, parents)


def _named(reference: Cursor, thing: KubeObject, kind: str = "") -> Name:
    """What an object refers to; without a namespace it is its own."""
    return Name(reference["namespace"].raw() or thing.namespace, reference["name"].raw(), kind)


def of_host(host: str, thing: KubeObject) -> Name:
    """The Service behind a host name: NAME, or NAME.NAMESPACE with more behind it."""
    name, _, rest = host.partition(".")
    return Name(rest.partition(".")[0] or thing.namespace, name)


def _route(  # noqa: PLR0917 - the parts of one object
    thing: KubeObject,
    cursor: Cursor,
    services: list[Name],
    found: list[Setting],
    paths: list[str],
    parents: tuple[Name, ...],
) -> Route:
    return Route(
        place=cursor.place,
        kind=thing.kind,
        name=thing.name,
        namespace=thing.namespace,
        services=tuple(one for one in services if one.name),
        paths=tuple(path for path in paths if path),
        settings=tuple(found),
        parents=parents,
        labels=thing.root.at("metadata", "labels").texts(),
    )


def _ingress(annotations: Cursor) -> Iterator[Setting]:
    for key, child in annotations.entries():
        short = key.rpartition("/")[2]
        if key in ANNOTATIONS:
            yield from named(ANNOTATIONS[key], child.string())
        elif short in SNIPPETS and ("nginx" in key):
            yield from nginx.flat(child)
        elif key == ALB:
            yield from _idle(child)


def _idle(cursor: Cursor) -> Iterator[Setting]:
    match = IDLE_ATTRIBUTE.search(cursor.raw())
    if match:
        yield Setting("idle-timeout", Known(match[1], cursor.place, match[0]))


def config_map(thing: KubeObject) -> Iterator[Policy]:
    """Proxies that are configured by files: nginx and Envoy. `targets` are the hosts that they pass requests to."""
    for _, child in thing.root["data"].entries():
        text = child.raw()
        if "_pass" in text:
            for one in nginx.passed(text):
                targets = tuple(replace(of_host(host, thing), kind="Service") for host in sorted(one.hosts))
                found = tuple(nginx.settings(one, child))
                yield Policy(child.place, thing.kind, thing.name, thing.namespace, targets, found)
        elif found := tuple(_envoy_text(child)):
            hosts = sorted(set(ADDRESS.findall(text)))
            targets = tuple(replace(of_host(host, thing), kind="Service") for host in hosts)
            yield Policy(child.place, thing.kind, thing.name, thing.namespace, targets, found)
    yield from _controller(thing)


def _controller(thing: KubeObject) -> Iterator[Policy]:
    """ingress-nginx's own ConfigMap: what holds for every Ingress that doesn't say otherwise."""
    found: list[Setting] = []
    for key, child in thing.root["data"].entries():
        if key in CONTROLLER and not child.raw().startswith("{"):
            found.extend(named(CONTROLLER[key], child.string()))
        elif key == "gzip-types" and {"text/event-stream", "*"} & set(child.raw().split()):
            found.append(Setting("compression", Known("text/event-stream", child.place, child.raw())))
    if found and "nginx" in thing.name:
        yield Policy(thing.place, "IngressController", thing.name, thing.namespace, (), tuple(found))


def _envoy_text(child: Cursor) -> Iterator[Setting]:
    """Envoy's configuration as a text."""
    if not re.search(r"static_resources|http_filters|typed_config", child.raw()):
        return
    try:
        roots = [document.root for document in documents(child.raw())]
    except BadText:
        return
    for node in roots:
        for one in settings_anywhere(Cursor(node, child.place.at(None, child.place.path))):
            yield moved(one, child)


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
    found = list(_load_balancer(thing.root.at("metadata", "annotations")))
    return Service(thing.place, thing.name, thing.namespace, spec["selector"].texts(), tuple(found))


def _load_balancer(annotations: Cursor) -> Iterator[Setting]:
    for key, child in annotations.entries():
        if key.startswith(f"{NLB}aws-load-balancer-") and "attributes" in key:
            yield from _idle(child)
        elif key == f"{NLB}aws-load-balancer-connection-idle-timeout":
            yield from named("idle-timeout", child.string())


def policy(thing: KubeObject) -> Policy:
    """A policy and what it applies to."""
    spec = thing.root["spec"]
    references = [*spec["targetRefs"].items(), spec["targetRef"]]
    targets = tuple(Name(thing.namespace, one["name"].raw(), one["kind"].raw()) for one in references if one)
    if thing.kind == "Middleware":  # Routes name it, and not the other way round.
        itself = (Name(thing.namespace, thing.name), Name("", f"{thing.namespace}-{thing.name}@kubernetescrd"))
        targets = tuple(replace(one, kind="Middleware") for one in itself)
    selectors = [(one["kind"].raw(), one["matchLabels"].texts()) for one in spec["targetSelectors"].items()]
    if spec["workloadSelector"]:
        selectors.append(("", spec.at("workloadSelector", "labels").texts()))
    return Policy(
        thing.place,
        thing.kind,
        thing.name,
        thing.namespace,
        targets,
        tuple(_policy_settings(thing.kind, spec)),
        tuple(selectors),
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
    elif kind == "Middleware":
        yield from _middleware(spec)
    elif kind == "ClientTrafficPolicy":
        yield from named("stream-idle-timeout", http["streamIdleTimeout"].string())
        limit = spec.at("connection", "connectionLimit")
        yield from named("max-stream-duration", limit["maxStreamDuration"].string())
        yield from named("connection-duration", limit["maxConnectionDuration"].string())
    elif kind == "EnvoyExtensionPolicy":
        for one in spec["lua"].items():
            yield from lua(one["inline"])
        for one in spec["extProc"].items():
            body = one.at("processingMode", "response", "body")
            if body:
                fact: Fact[str] = body.string() or Unknown("isn't text", body.place)
                yield Setting("ext-proc-body", fact)
    elif kind in {"EnvoyFilter", "EnvoyPatchPolicy", "EnvoyProxy"}:
        yield from settings_anywhere(spec)
        yield from _envoy_text(spec.at("bootstrap", "value"))
        yield from _load_balancer(spec.at("provider", "kubernetes", "envoyService", "annotations"))


def _middleware(spec: Cursor) -> Iterator[Setting]:
    """Traefik's: `buffering` gathers the whole answer, and its compressor may be told to take event streams."""
    if spec["buffering"]:
        yield Setting("buffering", Known("on", spec["buffering"].place))
    for one in spec.at("compress", "includedContentTypes").items():
        if "event-stream" in one.raw():
            yield Setting("compression", Known(one.raw(), one.place))
