"""INV-SRVMOD-02: p95 inter-token latency of 30 ms, measured, alerted on, and followed by more engines at 38 ms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.contract import ITL_P95_MS, SCALE_OUT_AFTER_SECONDS, SCALE_OUT_ITL_MS, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import AlertRule, Engine, Known, Scaler, Trigger, Unknown, World
from srvmod.policies.readers.quantities import parse_duration
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import ENGINES_ANNOTATION, scaler_of, vllm_engines

CLAUSE = Clause.INV_SRVMOD_02
SCALER = Maker(CLAUSE, "scaler", "capacity must follow latency by itself: above 38 ms for 60 s engines are added")
MISSING_DATA = Maker(
    CLAUSE, "missing-data", "engines that can't be measured aren't idle: scaling in on no data drops streams"
)
ALERT = Maker(CLAUSE, "alert", "nobody hears of a p95 above 30 ms")
NOTED = Maker(
    CLAUSE, "noted-engines", "admission shares the sessions among the engines that are noted: too many let too few pass"
)
METRIC = "inter_token_latency_seconds"
ALTERNATIVES = (METRIC, "request_time_per_output_token_seconds")
QUANTILE = re.compile(r"histogram_quantile\s*\(\s*([0-9.]+)")
EDGE = re.compile(r"\ble\s*=~?\s*\"([^\"]*)\"")
RANGE = re.compile(r"\[\s*([0-9]+[smhd](?:[0-9]+[smhd])*)\s*(?::[^\]]*)?\]")
COMPARISON = re.compile(r">=?\s*(?:bool\s+)?([0-9.]+(?:e-?[0-9]+)?)\b")
BESIDE = re.compile(r"\b(?:and|or|unless)\b")
P95 = 0.95
NUMBER = r"(\d+(?:\.\d+)?(?:e\d+)?)"
SCALED_BY = re.compile(rf"([*/])\s*\(?\s*{NUMBER}\s*\)?$|^{NUMBER}\s*\*")
"""A factor at the end of a query, or at its beginning: the threshold is in the unit that it makes."""
ZERO_WITHOUT_DATA = re.compile(r"\bor\s+(?:on\s*\(\s*\)\s*)?vector\s*\(\s*0\s*\)\s*\)*$")
AVERAGE = re.compile(rf"(?:{'|'.join(ALTERNATIVES)})_sum\b")


def scaler(world: World, config: Config) -> Iterator[Finding]:
    """A scaler for each engine, whose trigger is inter-token latency at 38 ms, acting within 60 s."""
    done: set[str] = set()
    for engine in vllm_engines(world):
        found = scaler_of(engine.workload, world)
        if found is None:
            yield from _no_scaler(engine, config)
        elif str(found.place) not in done:
            done.add(str(found.place))
            yield from _scaler(found, world)


def _no_scaler(engine: Engine, config: Config) -> Iterator[Finding]:
    what = f"no scaler sets the replicas of {engine.workload.kind} {engine.workload.name}"
    fix = f"a ScaledObject on vllm:{METRIC}, {SCALE_OUT_ITL_MS} for {SCALE_OUT_AFTER_SECONDS}"
    if config.whole:
        yield SCALER.error(engine.workload.place, what, fix)


def _scaler(found: Scaler, world: World) -> Iterator[Finding]:
    wanted = f"a trigger on vllm:{METRIC} with the threshold {SCALE_OUT_ITL_MS}"
    if isinstance(found.most, Known) and isinstance(found.least, Known) and found.most.value <= found.least.value:
        yield SCALER.error(
            found.most.place, f"most {found.most.value} and least {found.least.value} leave no room", "a range"
        )
    if found.stopped is not None:
        yield SCALER.error(found.stopped.place, f"it adds no engines: {found.stopped.value}", "leave that out")
    if isinstance(found.formula, Known):
        unknown = Unknown("scalingModifiers.formula takes the place of the triggers' thresholds", found.formula.place)
        yield SCALER.unknown("when it adds engines", unknown, wanted)
    recorded = {rule.record: rule for rule in world.alerts if rule.record}
    latency: list[tuple[Trigger, str]] = []
    for trigger in found.triggers:
        if isinstance(trigger.query, Unknown):
            yield SCALER.unknown("the trigger's query", trigger.query)
            return
        if trigger.query is not None:
            query = _with_records(trigger.query.value, recorded)
            if any(name in query for name in ALTERNATIVES):
                latency.append((trigger, query))
    if not latency:
        yield SCALER.error(found.place, "no trigger looks at inter-token latency", wanted)
    for trigger, query in latency:
        yield from _threshold(trigger, query)
        yield from _hold(found, trigger, query)


def _with_records(query: str, recorded: dict[str, AlertRule]) -> str:
    """A query with what recording rules of the input stand for behind it."""
    for _ in range(3):
        names = [name for name in recorded if name in query and f"({name})" not in query]
        if not names:
            return query
        for name in names:
            expression = recorded[name].expression
            if isinstance(expression, Known):
                query += f" ({name}) {expression.value}"
    return query


def _threshold(trigger: Trigger, query: str) -> Iterator[Finding]:
    limit_seconds = SCALE_OUT_ITL_MS.value / 1e3
    threshold = trigger.threshold
    edges = edges_of(query)
    if edges:
        # A share of tokens over an edge: the edge is the limit, and 5 % above it are a p95.
        if all(edge > limit_seconds + 1e-9 for edge in edges):
            place = trigger.query.place if isinstance(trigger.query, Known) else trigger.place
            what = f"the query's edge is {min(edges) * 1e3:g} ms"
            yield SCALER.error(place, what, f'le="{limit_seconds:g}"')
        return
    if isinstance(threshold, Unknown):
        yield SCALER.unknown("the trigger's threshold", threshold)
        return
    if lower := _below_p95(query):
        yield SCALER.error(trigger.place, f"the trigger looks at {lower}", "histogram_quantile(0.95, …)")
    if threshold is None:
        yield SCALER.error(trigger.place, "the trigger has no threshold", f"threshold: '{limit_seconds:g}'")
        return
    if scaled := SCALED_BY.search(query.strip()):
        factor = float(scaled[2] or scaled[3])
        limit_seconds = limit_seconds / factor if scaled[1] == "/" and factor else limit_seconds * factor
    elif re.search(r"\*\s*1000\b|\*\s*1e3\b", query):
        limit_seconds *= 1e3
    if "scalar" not in query and threshold.value > limit_seconds * (1 + 1e-9):
        what = f"the threshold is {threshold.text or threshold.value}, above {SCALE_OUT_ITL_MS}"
        yield SCALER.error(threshold.place, what, f"threshold: '{limit_seconds:g}'")


def _below_p95(query: str) -> str:
    """What a query looks at where that is less than the p95; empty otherwise."""
    match = QUANTILE.search(query)
    if match and parse_duration(match[1]) is not None:
        return f"the {float(match[1]):g} quantile" if float(match[1]) < P95 else ""
    return "an average" if not edges_of(query) and AVERAGE.search(query) else ""


def edges_of(query: str) -> list[float]:
    """Bucket edges that a query names, in seconds."""
    found: list[float] = []
    for text in EDGE.findall(query):
        for part in text.split("|"):
            try:
                found.append(float(part))
            except ValueError:
                continue
    return [edge for edge in found if edge != float("inf")]


def _hold(found: Scaler, trigger: Trigger, query: str) -> Iterator[Finding]:
    most = float(SCALE_OUT_AFTER_SECONDS.value)
    if isinstance(found.window, Known) and found.window.value > most:
        what = f"scale-up waits for {found.window.value} s"
        yield SCALER.error(found.window.place, what, f"stabilizationWindowSeconds: at most {most:.0f}")
    ranges = [seconds for text in RANGE.findall(query) if (seconds := parse_duration(text)) is not None]
    if ranges and min(ranges) > most:
        place = trigger.query.place if isinstance(trigger.query, Known) else trigger.place
        what = f"the query looks back {min(ranges):.0f} s, so a breach shows after more than {most:.0f} s"
        yield SCALER.error(place, what, f"[{most:.0f}s]")


def missing_data(world: World, config: Config) -> Iterator[Finding]:
    """A scaler doesn't take missing data for zero."""
    del config
    for engine in vllm_engines(world):
        found = scaler_of(engine.workload, world)
        if found is None or found.kind != "ScaledObject":
            continue
        yield from _without_data(found)
        for trigger in found.triggers:
            if trigger.kind != "prometheus":
                continue
            query = trigger.query
            if isinstance(query, Known) and ZERO_WITHOUT_DATA.search(query.value.strip()):
                yield MISSING_DATA.error(query.place, "the query is 0 where nothing is measured", "no `or vector(0)`")
            ignore = trigger.ignore_missing
            fix = "ignoreNullValues: 'false'"
            if isinstance(ignore, Unknown):
                yield MISSING_DATA.unknown("ignoreNullValues", ignore, fix)
            elif ignore is None or ignore.value:
                said = "isn't given, so it is true" if ignore is None else "is true"
                place = trigger.place if ignore is None else ignore.place
                yield MISSING_DATA.error(place, f"ignoreNullValues {said}: no data counts as 0", fix)


def _without_data(found: Scaler) -> Iterator[Finding]:
    least = found.least.value if isinstance(found.least, Known) else 0
    if isinstance(found.idle, Known) and found.idle.value < least:
        what = f"idleReplicaCount is {found.idle.value}: engines below the least of {least} when no trigger is active"
        yield MISSING_DATA.error(found.idle.place, what, "leave idleReplicaCount out")
    most = found.most.value if isinstance(found.most, Known) else None
    if isinstance(found.fallback, Known) and (most is None or found.fallback.value < most):
        what = f"fallback.replicas is {found.fallback.value}: that many engines while the metric can't be read"
        yield MISSING_DATA.error(found.fallback.place, what, "fallback.behavior: currentReplicasIfHigher")


def noted_engines(world: World, config: Config) -> Iterator[Finding]:
    """The engines that an object notes for admission are its scaler's minimum."""
    del config
    for engine in vllm_engines(world):
        noted = engine.workload.annotations.get(ENGINES_ANNOTATION)
        found = scaler_of(engine.workload, world)
        if noted is None or found is None or not isinstance(found.least, Known):
            continue
        if noted != str(found.least.value):
            least = found.least.value
            what = f"annotation {ENGINES_ANNOTATION} = {noted!r}, but {found.kind} {found.name} goes to {least}"
            yield NOTED.error(engine.workload.place, what, f"{ENGINES_ANNOTATION}: '{least}'")


def alert(world: World, config: Config) -> Iterator[Finding]:
    """An alert on a p95 of 30 ms."""
    recorded = {rule.record: rule for rule in world.alerts if rule.record}
    limit = ITL_P95_MS.value / 1e3
    about: list[tuple[AlertRule, str]] = []
    for rule in world.alerts:
        if not rule.alert or not isinstance(rule.expression, Known):
            continue
        expression = _with_records(rule.expression.value, recorded)
        if any(name in expression for name in ALTERNATIVES):
            about.append((rule, expression))
    sharp = [(rule, expression) for rule, expression in about if not _below_p95(expression)]
    at_limit = [rule for rule, expression in sharp if _alert_limit(expression) <= limit * (1 + 1e-9)]
    engines = list(vllm_engines(world))
    fix = f'an alert on the share of tokens above le="{limit:g}", or on histogram_quantile(0.95, …) > {limit:g}'
    if engines and about and not at_limit:
        rule, expression = (sharp or about)[0]
        of = f", of {lower}" if (lower := _below_p95(expression)) else ""
        what = f"alert {rule.alert} speaks of {_alert_limit(expression) * 1e3:g} ms{of}"
        yield ALERT.error(rule.place, what, fix)
    elif engines and not about and config.whole:
        yield ALERT.error(engines[0].workload.place, "no alert looks at inter-token latency", fix)


def _alert_limit(expression: str) -> float:
    edges = edges_of(expression)
    if edges:
        return min(edges)
    # A condition beside it, such as that there is traffic, has a number of its own.
    parts = BESIDE.split(expression)
    about = [part for part in parts if QUANTILE.search(part)] or parts
    found = [float(text) for part in about for text in COMPARISON.findall(part) if text.count(".") <= 1]
    limit = min(found, default=float("inf"))
    return limit / 1e3 if re.search(r"\*\s*1000\b|\*\s*1e3\b", expression) else limit


RULES = (scaler, missing_data, noted_engines, alert)
