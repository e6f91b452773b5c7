"""MC-SE-01: tokens flow one by one from engine to client, and no proxy cuts or gathers them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from srvmod.contract import ITL_P95_MS, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import Known, Name, Policy, Route, Setting, Unknown, World
from srvmod.policies.readers.quantities import parse_duration
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.index import index
from srvmod.policies.rules.subjects import (
    engine_services,
    longest_answer_seconds,
    services_of,
    serving_routes,
    vllm_engines,
)

INTERVAL = Maker(Clause.MC_SE_01, "stream-interval", "several tokens in one event arrive in bursts")
API = Maker(Clause.MC_SE_01, "openai-api", "clients stream from /v1/chat/completions over HTTP")
DEADLINE = Maker(Clause.MC_SE_01, "deadline", "the proxy cuts running streams; the client sees a truncated 200")
IDLE = Maker(
    Clause.MC_SE_01, "idle-timeout", "a stream that waits for its first token is cut, or none is ever given up"
)
BUFFERING = Maker(
    Clause.MC_SE_01, "buffering", "the proxy holds tokens until its buffer is full or the answer has ended"
)
LEAST_IDLE_SECONDS = 60.0
"""A load balancer's own default (AWS: 60 s); a first token waits that long only under overload."""
ENVOY_GATEWAY_DEADLINE = "Envoy's 15 s"
ON = {"on", "true", "yes", "1"}
WHOLE_PROXIES = {"EnvoyFilter", "EnvoyProxy"}
ROOTS = {"", "istio-system"}
"""Namespaces whose filters are for the whole mesh."""
ENVOY_ROUTES = {
    "HTTPRoute": "rules[].timeouts.request: 0s",
    "GRPCRoute": "rules[].timeouts.request: 0s",
    "HTTPProxy": "routes[].timeoutPolicy.response: infinity",
}
"""Routes of Envoy proxies that leave its default deadline in place, and how each takes it away."""
OFF_TIMES = {"0", "0s", "0ms", "0m", "0h", "infinity", "disabled"}


def stream_interval(world: World, config: Config) -> Iterator[Finding]:
    """One event per token."""
    del config
    for engine in vllm_engines(world):
        interval = engine.line.integer("stream_interval")
        if isinstance(interval, Unknown):
            yield INTERVAL.unknown("stream_interval", interval, "--stream-interval=1")
        elif interval is not None and interval.value != 1:
            yield INTERVAL.error(interval.place, f"stream_interval is {interval.value}", "--stream-interval=1")


def openai_api(world: World, config: Config) -> Iterator[Finding]:
    """The engine serves HTTP itself."""
    del config
    for engine in vllm_engines(world):
        for name in ("grpc", "headless"):
            given = engine.line.given.get(name)
            if isinstance(given, Known) and given.value is True:
                yield API.error(given.place, f"--{name}: no OpenAI API over HTTP", f"leave --{name} out")


def deadlines(world: World, config: Config) -> Iterator[Finding]:
    """No deadline on the response of a route that leads to engines, other than one that outlasts any answer."""
    needed = longest_answer_seconds(world, config, ITL_P95_MS.value)
    routes = serving_routes(world)
    policies = applying(world, routes)
    for route in routes:
        own = [
            one
            for one in route.settings
            if one.topic in {"request-timeout", "backend-timeout", "deadline", "retry-timeout"}
        ]
        above = [one for policy in _on(route, world) for one in policy.settings]
        beside = [one for one in above if one.topic == "request-timeout"]
        bound = [one for one in above if one.topic == "max-stream-duration"]
        for setting in own:
            yield from _long_enough(setting, needed)
        first = any(one.topic == "request-timeout" for one in own)
        if route.kind in ENVOY_ROUTES and not first and not beside and not bound:
            what = f"no response deadline is given, so it is {ENVOY_GATEWAY_DEADLINE}"
            yield DEADLINE.error(route.place, what, ENVOY_ROUTES[route.kind])
    platforms = {engine.workload.place: engine.workload.deadline for engine in vllm_engines(world)}
    for given in platforms.values():
        if isinstance(given, Known):
            yield from _long_enough(Setting("timeout", Known(f"{given.value}s", given.place)), needed)
        elif given is not None:
            yield DEADLINE.unknown("timeout", given)
    for policy in policies:
        for setting in policy.settings:
            if setting.topic in {"request-timeout", "max-stream-duration", "retry-timeout"}:
                yield from _long_enough(setting, needed)


def _long_enough(setting: Setting, needed: float) -> Iterator[Finding]:
    value = setting.value
    if isinstance(value, Unknown):
        yield DEADLINE.unknown(setting.topic, value)
        return
    if value.value.strip().lower() in OFF_TIMES:
        return
    seconds = parse_duration(value.value)
    if seconds is None:
        yield DEADLINE.unknown(setting.topic, Unknown(f"{value.value!r} isn't a duration", value.place))
    elif 0 < seconds < needed:
        what = f"{setting.topic} is {value.value}, shorter than the longest answer ({needed:.0f} s at {ITL_P95_MS})"
        yield DEADLINE.error(value.place, what, f"0s, or at least {needed:.0f}s")


def idle_timeouts(world: World, config: Config) -> Iterator[Finding]:
    """Idle time-outs outlast the wait for a first token."""
    del config
    routes = serving_routes(world)
    settings = [one for route in routes for one in route.settings]
    settings += [one for policy in applying(world, routes) for one in policy.settings]
    settings += [one for engine in world.engines for service in services_of(engine, world) for one in service.settings]
    for setting in dict.fromkeys(settings):
        if setting.topic not in {"idle-timeout", "stream-idle-timeout"}:
            continue
        value = setting.value
        if isinstance(value, Unknown):
            yield IDLE.unknown(setting.topic, value)
            continue
        seconds = parse_duration(value.value)
        if seconds is None:
            yield IDLE.unknown(setting.topic, Unknown(f"{value.value!r} isn't a duration", value.place))
        elif 0 < seconds < LEAST_IDLE_SECONDS:
            fix = f"at least {LEAST_IDLE_SECONDS:.0f}s"
            yield IDLE.error(value.place, f"{setting.topic} is {value.value}", fix)


def buffering(world: World, config: Config) -> Iterator[Finding]:
    """No proxy on the way buffers, compresses or inspects response bodies."""
    del config
    routes = serving_routes(world)
    settings = [one for route in routes for one in route.settings]
    settings += [one for policy in applying(world, routes) for one in policy.settings]
    for setting in dict.fromkeys(settings):
        value = setting.value
        if setting.topic not in {"buffering", "compression", "ext-proc-body"}:
            continue
        if isinstance(value, Unknown):
            yield BUFFERING.unknown(setting.topic, value)
        elif setting.topic == "buffering" and value.value.lower() in ON:
            yield BUFFERING.error(value.place, f"response buffering is {value.value}", "turn it off on this route")
        elif setting.topic == "compression":
            yield BUFFERING.error(value.place, "event streams are compressed", "leave text/event-stream out")
        elif setting.topic == "ext-proc-body":
            yield from _body_mode(value)


def _body_mode(value: Known[str]) -> Iterator[Finding]:
    mode = re.sub(r"[^a-z]", "", value.value.lower())
    if mode.startswith("buffered"):
        yield BUFFERING.error(value.place, f"ext_proc response body mode {value.value}", "no response body processing")
    elif mode in {"streamed", "fullduplexstreamed"}:
        what = f"ext_proc response body mode {value.value} takes every token through another process"
        yield BUFFERING.warning(value.place, what, "no response body processing")


def applying(world: World, routes: list[Route]) -> list[Policy]:
    """Policies that apply to routes of engines: to the route, its gateway, its Services, or to all of a proxy."""
    reached = [name for route in routes for name in _reached(route)]
    reached += [replace(one, kind="Service") for route in routes for one in route.services]
    reached += [replace(one, kind="Service") for names in engine_services(world).values() for one in names]
    by_name: dict[str, set[Name]] = {}
    for one in reached:
        by_name.setdefault(one.name, set()).add(one)
    served = {engine.workload.namespace for engine in world.engines} | {route.namespace for route in routes} | ROOTS
    found: list[Policy] = []
    for policy in world.policies:
        if policy.kind == "IngressController":
            said = {one.topic for one in policy.settings}
            on_the_way = any(
                route.kind == "Ingress" and not said <= {one.topic for one in route.settings} for route in routes
            )
        elif policy.kind in WHOLE_PROXIES:
            on_the_way = bool(routes or world.engines) and not _elsewhere(policy, served)
        else:
            named = any(one.means(other) for one in policy.targets for other in by_name.get(one.name, ()))
            on_the_way = named or any(_selects(policy, route) for route in routes)
        if on_the_way:
            found.append(policy)
    return found


def _elsewhere(policy: Policy, served: set[str]) -> bool:
    """Whether a filter is for chosen pods of a namespace without engines and routes to them, gateways aside."""
    words = [word for _, labels in policy.selectors for pair in labels.items() for word in pair]
    return bool(words) and policy.namespace not in served and not any("gateway" in word for word in words)


def _selects(policy: Policy, route: Route) -> bool:
    """Whether a policy chooses a route by labels; labels of gateways aren't known here, so that all are chosen."""
    if policy.namespace and route.namespace and policy.namespace != route.namespace:
        return False
    return any(
        kind == "Gateway" or (kind == route.kind and labels.items() <= route.labels.items())
        for kind, labels in policy.selectors
    )


def _reached(route: Route) -> list[Name]:
    return [Name(route.namespace, route.name, route.kind), *route.parents]


def _on(route: Route, world: World) -> list[Policy]:
    """Policies of a route or of its gateways."""
    named = [
        policy
        for one in _reached(route)
        for policy in index(world).policies.get((one.kind, one.name), ())
        if any(one.means(target) for target in policy.targets)
    ]
    return [*named, *(policy for policy in world.policies if _selects(policy, route))]


RULES = (stream_interval, openai_api, deadlines, idle_timeouts, buffering)
