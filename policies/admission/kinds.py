"""Kinds that bring engines without being judged: they are refused in serving namespaces when they look like it.

An object's spec is written out as one text, so that an engine is found at whatever depth a kind keeps it.
"""

from __future__ import annotations

from srvmod.contract import Clause
from srvmod.policies.admission.policy import Policy, Resource, Validation, text
from srvmod.policies.readers.programs import IMAGES, VLLM_OPTIONS
from srvmod.policies.readers.unreadable import CHARTS, ENGINE_CHART

JUDGED = (
    "", "apps", "batch", "autoscaling", "policy", "events.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
    "networking.k8s.io", "rbac.authorization.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "resource.k8s.io", "storage.k8s.io", "metrics.k8s.io", "gateway.networking.k8s.io", "gateway.envoyproxy.io",
    "keda.sh", "monitoring.coreos.com", "leaderworkerset.x-k8s.io", "ray.io", "serving.kserve.io",
)  # fmt: skip
"""Groups whose kinds hold no pods, or are judged by the other policies."""
KIND = "request.kind.kind"
WORDS = (
    r"vllm(\", \"| )serve",
    r"dynamo\.(vllm|sglang|trtllm)",
    r"entrypoints\.(openai\.)?api_server",
    r"(?i)tensor_?parallel",
    r"(?i)\"(engine|runtime|backend)\": ?\"(vllm|sglang|tensorrt-?llm|trtllm)\"",
    r"(^|[\"/])nim/",
)


def kinds() -> Policy:
    """INV-SRVMOD-01 on every other kind of a serving namespace."""
    images = "|".join(
        pattern.pattern.replace("(^|/)", '([^"]*/)?').replace("|$)", '|")').replace("([-:@]", "([-:@]")
        for pattern, _ in IMAGES
    )
    engine = "|".join((VLLM_OPTIONS.pattern.replace("(?:=|$)", '[=" ]'), *WORDS, f'"(image|repository)": ?"({images})'))
    charts = ", ".join(sorted({f"'{kind}'" for kind, _ in CHARTS}))
    spec = "object.?spec.orValue({}), object.?objects.orValue([]), object.?template.orValue({})"
    return Policy(
        "kinds",
        "What isn't a workload that can be judged, or a chart to be rendered, brings no engine.",
        (Resource("*", "*", ("*",)),),
        {"body": f"'%s'.format([[{spec}]])"},
        [
            Validation(
                Clause.INV_SRVMOD_01,
                "readable-engine",
                f"!variables.body.matches({text(engine)})",
                "this kind holds an engine that can't be read here",
                "a Deployment whose container runs vllm serve with a list of arguments",
                KIND,
            ),
            Validation(
                Clause.INV_SRVMOD_01,
                "readable-engine",
                f"!({KIND} in [{charts}]) || !variables.body.matches({text('(?i)' + ENGINE_CHART.pattern)})",
                "a chart of engines is installed where nobody sees its objects",
                "what helm template renders",
                KIND,
            ),
        ],
        {
            "changed": "request.operation == 'CREATE' || object.?spec != oldObject.?spec || "
            "object.?objects != oldObject.?objects || object.?template != oldObject.?template"
        },
        excluded=tuple(Resource(group, "*", ("*",)) for group in JUDGED),
        namespaced=True,
    )
