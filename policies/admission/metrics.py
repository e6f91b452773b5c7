"""Metric names and the latency alert in what Prometheus and Grafana read."""

from __future__ import annotations

from collections import defaultdict

from srvmod.contract import ITL_P95_MS, Clause
from srvmod.policies.admission.policy import Validation, text
from srvmod.policies.engine_versions import Table
from srvmod.policies.rules import Topic
from srvmod.policies.rules.latency import ALTERNATIVES

SUFFIXES = ("_bucket", "_sum", "_count", "_created", "_total")
NAME = r"'vllm:[a-zA-Z0-9_:]+[.*]?'"
"""A name in a text; a point or star behind it makes a pattern of it, which names nothing yet."""
EDGE = r"'\\ble=~?\"[0-9.]+\"'"
KIND = "request.kind.kind"


def exported(table: Table) -> str:
    """A regular expression of the names that a version exports: names of one family share their beginning."""
    suffixes: dict[str, set[str]] = defaultdict(set)
    for name in table.exposed:
        suffix = next((one for one in SUFFIXES if name.endswith(one)), "")
        suffixes[name.removesuffix(suffix)].add(suffix)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for base, found in suffixes.items():
        groups[tuple(sorted(found))].append(base.removeprefix("vllm:"))
    parts = sorted(f"({'|'.join(sorted(bases))})({'|'.join(ends)})" for ends, bases in groups.items())
    return f"^vllm:({'|'.join(parts)})$"


def edges(query: str) -> str:
    """Bucket edges that a query names, as numbers."""
    return (
        f"{query}.findAll({EDGE}).map(e, double(e.substring(e.indexOf('\"') + 1, e.lastIndexOf('\"'))))"
        ".filter(e, e < 1000000.0)"
    )


def variables(table: Table) -> dict[str, str]:
    """Rules of a PrometheusRule, the texts that hold metric names, and those that the object itself records."""
    names = "['.json', '.yaml', '.yml', '.rules']"
    data = "object.?data.orValue({})"
    return {
        "exported": text(exported(table)),
        "rules": f"{KIND} == 'PrometheusRule' ? object.spec.?groups.orValue([]).map(g, g.?rules.orValue([])).flatten()"
        " : []",
        "recorded": "variables.rules.filter(r, has(r.record)).map(r, string(r.record))",
        "queries": f"{KIND} == 'ConfigMap' ? {data}.transformList(k, v, {names}.exists(e, k.endsWith(e)), string(v)) : "
        "variables.rules.map(r, string(r.expr))",
        "latency": "variables.rules.filter(r, has(r.alert) && string(r.expr).matches("
        f"{text('|'.join(ALTERNATIVES))})).map(r, string(r.expr))",
    }


def validations(table: Table) -> list[Validation]:
    """ENGINE-VERSION on names, INV-SRVMOD-02 on the alert."""
    limit = ITL_P95_MS.value / 1e3
    over = "q.findAll('>=?\\\\s*[0-9]+[.]?[0-9]*').map(c, double(c.replace('>', '').replace('=', '').trim()))"
    quantile = "q.contains('histogram_quantile(0.95') || q.contains('histogram_quantile(0.99')"
    low = (
        f"{edges('q')}.size() > 0 ? {edges('q')}.exists(e, e <= {limit}) : "
        f"(({quantile}) && {over}.exists(c, c <= {limit}))"
    )
    return [
        Validation(
            Topic.ENGINE_VERSION,
            "metrics",
            f"variables.queries.all(q, q.findAll({NAME}).all(m, m.endsWith('.') || m.endsWith('*') || "
            "m.matches(variables.exported) || m in variables.recorded))",
            f"a rule or dashboard asks for a metric that vLLM {table.version} doesn't export",
            "a metric that the version exports, or one that a rule of the same object records",
        ),
        Validation(
            Clause.INV_SRVMOD_02,
            "alert",
            f"variables.latency.size() == 0 || variables.latency.exists(q, {low})",
            f"an alert on inter-token latency, and none here at {limit * 1e3:.0f} ms",
            f'an alert in this object on the share of tokens over le="{limit:g}", or on the p95 > {limit:g}',
        ),
    ]
