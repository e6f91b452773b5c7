"""Objects around engines: groups of pods, routes, proxies' policies, scalers."""

from __future__ import annotations

from srvmod.contract import ITL_P95_MS, SCALE_OUT_AFTER_SECONDS, SCALE_OUT_ITL_MS, Clause
from srvmod.policies.admission import metrics
from srvmod.policies.admission.policy import Policy, Resource, Validation, list_of, text
from srvmod.policies.config import Config
from srvmod.policies.engine_versions import Table
from srvmod.policies.rules import Topic
from srvmod.policies.rules.latency import ALTERNATIVES
from srvmod.policies.rules.streaming import LEAST_IDLE_SECONDS

SE, INV_2, INV_3 = Clause.MC_SE_01, Clause.INV_SRVMOD_02, Clause.INV_SRVMOD_03
KIND = "request.kind.kind"
TIME = r"'^([0-9]{1,5}(h|m|s|ms)){1,4}$'"
NONE = "['0s', '0ms', '0m', '0h', '0']"
CHANGED = {
    "changed": "request.operation == 'CREATE' || object.?spec != oldObject.?spec || object.?data != oldObject.?data || "
    "object.metadata.?annotations != oldObject.metadata.?annotations"
}
"""A controller's note on the status or a finalizer isn't judged anew."""
CONTENT_CHANGED = {
    "changed": "request.operation == 'CREATE' || object.?spec != oldObject.?spec || object.?data != oldObject.?data"
}
SPEC_CHANGED = {"changed": "request.operation == 'CREATE' || object.spec != oldObject.spec"}
"""Karpenter and KEDA write annotations and finalizers on their objects."""
GROUPS = (
    Resource("leaderworkerset.x-k8s.io", "*", ("leaderworkersets",)),
    Resource("ray.io", "*", ("rayclusters", "rayservices", "rayjobs")),
    Resource(
        "serving.kserve.io",
        "*",
        ("inferenceservices", "llminferenceservices", "llminferenceserviceconfigs", "servingruntimes"),
    ),
)
ROUTES = (
    Resource("gateway.networking.k8s.io", "*", ("httproutes", "grpcroutes")),
    Resource("networking.k8s.io", "v1", ("ingresses",)),
    Resource("networking.istio.io", "*", ("virtualservices", "envoyfilters")),
)
PROXIES = (
    Resource(
        "gateway.envoyproxy.io",
        "*",
        ("backendtrafficpolicies", "clienttrafficpolicies", "envoyextensionpolicies", "envoypatchpolicies"),
    ),
)


def groups() -> Policy:
    """Kinds that make one engine of several pods, or that keep its command where CEL can't read it."""
    fix = "a Deployment whose container runs vllm serve with a list of arguments"
    return Policy(
        "groups",
        "An engine is a Deployment in serving namespaces: other kinds hide its command or spread it over pods.",
        GROUPS,
        {},
        [Validation(INV_3, "one-node", "false", "this kind can make one engine of several pods", fix, KIND)],
    )


def _long_enough(value: str, seconds: float) -> str:
    """Whether a deadline is off, or outlasts the longest answer."""
    return f"({value} in {NONE} || ({value}.matches({TIME}) && duration({value}) >= duration('{seconds:.0f}s')))"


def _idle(value: str) -> str:
    """Whether an idle time-out is off, or outlasts the wait for a first token."""
    return _long_enough(value, LEAST_IDLE_SECONDS)


def routes(config: Config) -> Policy:
    """MC-SE-01 on routes and what belongs to them. A route's deadline has to stand in the route itself."""
    shape = config.shape(config.model)
    assert shape is not None, config.model
    longest = shape.context_tokens * ITL_P95_MS.value / 1e3
    rules = "object.spec.?rules.orValue([])"
    deadline = (
        f"!({KIND} in ['HTTPRoute', 'GRPCRoute']) || {rules}.all(r, has(r.timeouts) && has(r.timeouts.request) && "
        f"{_long_enough('r.timeouts.request', longest)} && (!has(r.timeouts.backendRequest) || "
        f"{_long_enough('r.timeouts.backendRequest', longest)}))"
    )
    fields = [
        ("timeout.?http.?requestTimeout", "deadline", _long_enough("$v", longest)),
        ("timeout.?http.?maxStreamDuration", "deadline", _long_enough("$v", longest)),
        ("retry.?perRetry.?timeout", "deadline", _long_enough("$v", longest)),
        ("connection.?connectionLimit.?maxStreamDuration", "deadline", _long_enough("$v", longest)),
        ("timeout.?http.?streamIdleTimeout", "idle-timeout", _idle("$v")),
    ]
    found = [
        Validation(
            SE,
            "deadline",
            deadline,
            "a rule's response deadline is Envoy's 15 s, or shorter than the longest answer",
            f"rules[].timeouts.request: 0s, or at least {longest:.0f}s",
        ),
    ]
    for path, rule, condition in fields:
        there = f"object.spec.?{path}"
        ok = (
            f"!has(object.spec) || !{there}.hasValue() || "
            f"{condition.replace('$v', f'{there}.orValue(' + text('') + ')')}"
        )
        shown = path.replace(".?", ".")
        found.append(
            Validation(SE, rule, ok, f"{shown} cuts streams", "0s, or longer than the longest answer and 60 s")
        )
    body = (
        "object.spec.?extProc.orValue([]).all(p, !p.?processingMode.?response.?body.hasValue() || "
        "!string(p.processingMode.response.body).startsWith('Buffered'))"
    )
    buffers = "(!has(object.spec) || " + body + ")"
    annotations = "object.metadata.?annotations.orValue({})"
    ingress = (
        f"{annotations}.all(k, !k.endsWith('/proxy-buffering') || {annotations}[k].lowerAscii() in ['off', "
        "'false', 'no', '0'])"
        f" && {annotations}.all(k, !k.endsWith('-snippet') && !k.endsWith('-snippets'))"
    )
    read = (
        f"{annotations}.all(k, !(k.endsWith('/proxy-read-timeout') || k.endsWith('/proxy-send-timeout')) || "
        f"{annotations}[k].matches('^[0-9]{{1,9}}s?$') && (int({annotations}[k].replace('s', '')) == 0 || "
        f"int({annotations}[k].replace('s', '')) >= {LEAST_IDLE_SECONDS:.0f}))"
    )
    balancer = (
        f"{annotations}.all(k, !(k.contains('load-balancer') && k.contains('attributes')) || {annotations}[k]"
        ".findAll('idle_timeout[a-z_.]*\\\\s*=\\\\s*[0-9]{1,9}').all(a, "
        f"int(a.substring(a.indexOf('=') + 1).trim()) == 0 || int(a.substring(a.indexOf('=') + 1).trim()) >= "
        f"{LEAST_IDLE_SECONDS:.0f}))"
    )
    types = "object.spec.?compression.orValue([]) + object.spec.?compressor.orValue([])"
    compressed = (
        f"!has(object.spec) || ({types}).all(c, !has(c.contentType) || !c.contentType.exists(t, "
        "t.contains('event-stream')))"
    )
    hidden = f"!({KIND} in ['EnvoyFilter', 'EnvoyPatchPolicy', 'VirtualService'])"
    found += [
        Validation(SE, "buffering", buffers, "ext_proc buffers response bodies", "no response body processing"),
        Validation(SE, "buffering", compressed, "event streams are compressed", "leave text/event-stream out"),
        Validation(SE, "buffering", ingress, "the proxy buffers answers, or a snippet may", "proxy-buffering: 'off'"),
        Validation(SE, "idle-timeout", read, "an idle time-out is below 60 s", "at least 60"),
        Validation(SE, "idle-timeout", balancer, "the load balancer's idle time-out is below 60 s", "at least 60"),
        Validation(SE, "buffering", hidden, "this kind's configuration can't be read here", "an HTTPRoute", KIND),
    ]
    data = "object.?data.orValue({})"
    files = (
        f"{KIND} != 'ConfigMap' || {data}.all(k, "
        f"!{data}[k].matches('proxy_pass|fastcgi_pass|static_resources|http_filters'))"
    )
    shared = f"{KIND} != 'ConfigMap' || {data}.all(k, !{data}[k].matches('timeSlicing|migStrategy|mps:'))"
    found += [
        Validation(SE, "buffering", files, "a proxy's configuration in a ConfigMap can't be read here", "an HTTPRoute"),
        Validation(
            INV_3, "gpu-sharing", shared, "a device plugin's configuration can't be read here", "no sharing section"
        ),
    ]
    services = Resource("", "v1", ("services", "configmaps"))
    about = "Nothing between engine and client cuts, gathers or compresses streams."
    return Policy("routes", about, (*ROUTES, *PROXIES, services), {}, found, CHANGED)


def scalers(table: Table) -> Policy:
    """INV-SRVMOD-02 on scalers of a serving namespace."""
    limit = SCALE_OUT_ITL_MS.value / 1e3
    metric = "|".join(ALTERNATIVES)
    triggers = list_of("object.spec", "triggers")
    query = "string(t.metadata.query)"
    edges = metrics.edges(query)
    low = f"({edges}.size() > 0 ? {edges}.exists(e, e <= {limit}) : {query}.contains('histogram_quantile(0.95') || " + (
        f"{query}.contains('histogram_quantile(0.99'))"
    )
    number = "string(t.metadata.threshold).matches('^[0-9]*\\\\.?[0-9]+$')"
    threshold = f"({edges}.size() > 0 || ({number} && double(string(t.metadata.threshold)) <= {limit}))"
    latency = f"has(t.metadata) && has(t.metadata.query) && {query}.matches('{metric}')"
    ranges = f"{query}.findAll('\\\\[[0-9]+[smh]\\\\]').all(r, duration(r.replace('[', '').replace(']', '')) <= "
    ranges += f"duration('{SCALE_OUT_AFTER_SECONDS.value}s'))"
    behavior = (
        "object.spec.?advanced.?horizontalPodAutoscalerConfig.?behavior.?scaleUp.?stabilizationWindowSeconds.orValue(0)"
    )
    fix = f"a prometheus trigger on vllm:{ALTERNATIVES[0]} with the p95 at {limit} over at most 60s"
    return Policy(
        "scalers",
        "Capacity follows inter-token latency, alerts look at it, and both ask for metrics that there are.",
        (
            Resource("keda.sh", "*", ("scaledobjects",)),
            Resource("autoscaling", "*", ("horizontalpodautoscalers",)),
            Resource("monitoring.coreos.com", "*", ("prometheusrules",)),
            Resource("", "v1", ("configmaps",)),
        ),
        {"keda": f"{KIND} == 'ScaledObject'", **metrics.variables(table)},
        [
            Validation(
                INV_2,
                "scaler",
                f"{KIND} != 'HorizontalPodAutoscaler' || has(object.metadata.ownerReferences)",
                "an autoscaler's metric can't be read here",
                "a ScaledObject",
            ),
            Validation(
                INV_2,
                "scaler",
                f"!variables.keda || {triggers}.exists(t, {latency})",
                "no trigger looks at inter-token latency",
                fix,
            ),
            Validation(
                INV_2,
                "scaler",
                f"!variables.keda || {triggers}.all(t, !({latency}) || ({low} && {threshold} && {ranges}))",
                f"a trigger's quantile, threshold or range isn't a p95 at {limit} s within 60 s",
                fix,
            ),
            Validation(
                Topic.ENGINE_VERSION,
                "metrics",
                f"!variables.keda || {triggers}.all(t, !has(t.metadata) || "
                f"!has(t.metadata.query) || {query}.findAll('vllm:[a-zA-Z0-9_:]+')"
                ".all(m, m.matches(variables.exported)))",
                f"a query asks for a metric that vLLM {table.version} doesn't export",
                "a metric that the version exports",
            ),
            Validation(
                INV_2,
                "scaler",
                "!variables.keda || !has(object.spec.maxReplicaCount) || "
                "object.spec.maxReplicaCount > object.spec.?minReplicaCount.orValue(0)",
                "most and least leave no room",
                "a range",
            ),
            Validation(
                INV_2,
                "scaler",
                f"!variables.keda || {behavior} <= {SCALE_OUT_AFTER_SECONDS.value}",
                "scale-up waits too long",
                f"stabilizationWindowSeconds: at most {SCALE_OUT_AFTER_SECONDS.value}",
            ),
            Validation(
                INV_2,
                "missing-data",
                f"!variables.keda || {triggers}.all(t, t.type != 'prometheus' || "
                "(has(t.metadata.ignoreNullValues) && string(t.metadata.ignoreNullValues) == 'false'))",
                "ignoreNullValues isn't false: no data counts as 0",
                "ignoreNullValues: 'false'",
            ),
            *metrics.validations(table),
        ],
        CONTENT_CHANGED,
    )
