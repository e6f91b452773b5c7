"""OPERATIONS on one engine: probes, the end of streams, rollout, service links, shared memory."""

from __future__ import annotations

from srvmod.contract import ITL_P95_MS, P5_48XLARGE, SCALE_OUT_ITL_MS, Clause
from srvmod.policies.admission.engines import engine
from srvmod.policies.admission.policy import Validation, list_of
from srvmod.policies.rules import Topic
from srvmod.policies.rules.engine_version import BUCKET_FAMILIES
from srvmod.policies.rules.operations import LEAST_SHM_BYTES, LEAST_STARTUP_SECONDS

OPS = Topic.OPERATIONS
FAMILY = r'"[a-z_]+"\\s*:\\s*\\[[0-9.,\\s]+\\]'


def variables() -> dict[str, str]:
    """Seconds of preStop, the share of engines that an update takes down, the edges of each histogram."""
    sleep = "variables.engine.?lifecycle.?preStop"
    containers = f"(variables.spec.containers + {list_of('variables.spec', 'initContainers')})"
    return {
        "preStop": f"!{sleep}.hasValue() ? -1 : {sleep}.?sleep.?seconds.hasValue() ? "
        f"{sleep}.?sleep.?seconds.orValue(0) : int(({sleep}.?exec.?command.orValue([]).join(' ')"
        ".find('\\\\bsleep\\\\s+[0-9]{1,6}') + ' 0').split(' ').filter(p, p.matches('^[0-9]+$'))[0])",
        "down": "has(object.spec.strategy) && has(object.spec.strategy.rollingUpdate) && "
        "has(object.spec.strategy.rollingUpdate.maxUnavailable) ? "
        "string(object.spec.strategy.rollingUpdate.maxUnavailable) : '25%'",
        "cpusOfContainers": f"{containers}.map(c, {_amount('c', 'limits', 'cpu')})",
        "guaranteed": f"!variables.spec.?resources.hasValue() && {containers}.all(c, "
        + " && ".join(f"{_amount('c', 'limits', one)} > 0.0 && {_same(one)}" for one in ("cpu", "memory"))
        + ")",
        "families": f"variables.buckets.findAll('{FAMILY}')",
    }


def _amount(c: str, part: str, resource: str) -> str:
    """A container's amount of a resource as a number; 0 where it isn't given."""
    given = f"has({c}.resources) && has({c}.resources.{part}) && '{resource}' in {c}.resources.{part}"
    return f"({given} ? quantity(string({c}.resources.{part}['{resource}'])).asApproximateFloat() : 0.0)"


def _same(resource: str) -> str:
    request, limit = _amount("c", "requests", resource), _amount("c", "limits", resource)
    return f"({request} == 0.0 || {request} == {limit})"


def validations() -> list[Validation]:
    """What makes engines restart, hang or cut streams."""
    c = "variables.engine"
    startup = f"({c}.startupProbe.?periodSeconds.orValue(10) * {c}.startupProbe.?failureThreshold.orValue(3))"
    shm = (
        f"{list_of(c, 'volumeMounts')}.exists(m, m.mountPath.matches('^/dev/shm/*$') && "
        f"{list_of('variables.spec', 'volumes')}.exists(v, v.name == m.name && has(v.emptyDir) && "
        "has(v.emptyDir.medium) && v.emptyDir.medium == 'Memory' && (!has(v.emptyDir.sizeLimit) || "
        f"quantity(string(v.emptyDir.sizeLimit)).compareTo(quantity('{LEAST_SHM_BYTES}')) >= 0)))"
    )
    grace = "(has(variables.spec.terminationGracePeriodSeconds) ? variables.spec.terminationGracePeriodSeconds : 30)"
    timeout = "(variables.shutdownTimeout.matches('^[0-9]{1,9}$') ? int(variables.shutdownTimeout) : 0)"
    taken = (
        "(variables.down.endsWith('%') ? int(variables.down.replace('%', '')) * variables.minimum / 100 : "
        "int(variables.down))"
    )
    rollout = (
        "!(request.kind.kind == 'Deployment') || (has(object.spec.strategy) && has(object.spec.strategy.type) && "
        f"object.spec.strategy.type == 'Recreate') || {taken} > 0"
    )
    threads = P5_48XLARGE.threads_per_core
    whole_core = f"double(int(n)) != n || int(n) % {threads} == 0"
    cores = f"!variables.guaranteed || variables.cpusOfContainers.all(n, {whole_core})"
    edges = [ITL_P95_MS.value / 1e3, SCALE_OUT_ITL_MS.value / 1e3]
    there = " && ".join(
        f"variables.families.exists(f, f.startsWith('\"inter_token_latency\"') && {_edges('f')}.exists(e, e == {edge}))"
        for edge in edges
    )
    increasing = f"variables.families.all(f, {_edges('f')}.all(e, e > 0.0) && {_edges('f')}.isSorted() && " + (
        f"{_edges('f')}.all(e, {_edges('f')}.exists_one(o, o == e)))"
    )
    whole = r"^\\s*\\{\\s*" + FAMILY + r"(\\s*,\\s*" + FAMILY + r")*\\s*\\}\\s*$"
    families = "|".join(sorted(BUCKET_FAMILIES))
    named = rf"variables.families.all(f, f.matches('^\"({families})\"'))"
    return [
        engine(
            OPS, "probes", f"has({c}.readinessProbe)", "has no readinessProbe", "httpGet /health on the engine's port"
        ),
        engine(
            OPS,
            "probes",
            f"!has({c}.livenessProbe) || has({c}.startupProbe) || "
            f"{c}.livenessProbe.?initialDelaySeconds.orValue(0) >= {LEAST_STARTUP_SECONDS}",
            "has a livenessProbe and no startupProbe",
            "a startupProbe on /health of 20 minutes",
        ),
        engine(
            OPS,
            "probes",
            f"!has({c}.startupProbe) || {startup} >= {LEAST_STARTUP_SECONDS}",
            "startupProbe gives up too early",
            f"at least {LEAST_STARTUP_SECONDS} s",
        ),
        engine(
            OPS,
            "drain",
            f"{timeout} > 0",
            "shutdown_timeout is 0: SIGTERM aborts all streams",
            "--shutdown-timeout=60",
            "variables.shutdownTimeout",
        ),
        engine(
            OPS,
            "drain",
            "variables.preStop >= 0",
            "has no preStop: the proxy still sends requests to it",
            "lifecycle.preStop.sleep: {seconds: 15}",
        ),
        engine(
            OPS,
            "drain",
            f"{grace} > {timeout} + variables.preStop",
            "terminationGracePeriodSeconds doesn't outlast preStop and shutdown_timeout",
            "more than both together",
            f"string({grace})",
        ),
        engine(
            OPS,
            "whole-cores",
            cores,
            "a container's CPUs aren't whole cores: the pool's kubelets refuse the pod (SMTAlignmentError)",
            f"a multiple of {threads} CPUs for each container, init containers too",
            "variables.cpusOfContainers.map(n, string(n)).join(', ')",
        ),
        engine(
            OPS,
            "rollout",
            rollout,
            "maxUnavailable is 0 engines: the update waits for a free island",
            "maxSurge: 0, maxUnavailable: 1",
            "variables.down",
        ),
        engine(
            OPS,
            "service-links",
            "has(variables.spec.enableServiceLinks) && !variables.spec.enableServiceLinks",
            "a Service named vllm would set VLLM_* variables",
            "enableServiceLinks: false",
        ),
        engine(
            OPS,
            "shared-memory",
            shm,
            "/dev/shm is the container's own, or small",
            "a volume emptyDir {medium: Memory, sizeLimit: 32Gi} mounted at /dev/shm",
        ),
        engine(
            Topic.ENGINE_VERSION,
            "combinations",
            f"variables.buckets == '' || (variables.buckets.matches('{whole}') && {named} && {increasing})",
            "custom_histogram_buckets aren't increasing positive numbers by family",
            'as in {"inter_token_latency":[0.03,0.038]}',
            "variables.buckets",
        ),
        engine(
            Clause.INV_SRVMOD_02,
            "buckets",
            there,
            "no bucket edge at 30 and 38 ms, which alert and scaler ask for",
            '--custom-histogram-buckets={"inter_token_latency":[0.01,0.02,0.03,0.038,0.05,0.1,1]}',
        ),
    ]


def _edges(family: str) -> str:
    inner = f"{family}.substring({family}.indexOf('[') + 1, {family}.indexOf(']'))"
    return f"{inner}.split(',').filter(p, p.trim().matches('^[0-9]+(\\\\.[0-9]+)?$')).map(p, double(p.trim()))"


__all__ = ["validations", "variables"]
