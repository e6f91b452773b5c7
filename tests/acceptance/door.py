"""A real API server with the admission policies bound as the program binds them, asked by dry runs."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from srvmod.contract import Clause
from srvmod.infra.platform.documents.admission import Admission, binding, bound
from srvmod.policies.rules import Topic
from tests.acceptance.deployment import cluster, until

Document = dict[str, Any]
SERVING, TOLD = "serving", "serving-told"
"""Two namespaces with the same policies: in the first they deny, in the second they warn of everything they find."""
CLAUSE = re.compile("(?:" + "|".join((*Clause, *Topic)) + ")/[a-z-]+")
PLURALS = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}
CLUSTER_WIDE = {
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "CustomResourceDefinition",
    "NodePool",
    "EC2NodeClass",
    "Namespace",
    "Node",
    "ClusterRole",
    "ClusterRoleBinding",
}
MISSING = (
    ("keda.sh", "v1alpha1", "ScaledObject"),
    ("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    ("ray.io", "v1", "RayCluster"),
    ("ray.io", "v1", "RayService"),
    ("serving.kserve.io", "v1beta1", "InferenceService"),
    ("serving.kserve.io", "v1alpha1", "LLMInferenceService"),
    ("serving.kserve.io", "v1alpha1", "ServingRuntime"),
    ("serving.kserve.io", "v1alpha1", "LLMInferenceServiceConfig"),
    ("serving.knative.dev", "v1", "Service"),
    ("argoproj.io", "v1alpha1", "Rollout"),
    ("argoproj.io", "v1alpha1", "Application"),
    ("argoproj.io", "v1alpha1", "Workflow"),
    ("argoproj.io", "v1alpha1", "WorkflowTemplate"),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"),
    ("helm.cattle.io", "v1", "HelmChart"),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ("nvidia.com", "v1alpha1", "DynamoGraphDeployment"),
    ("apps.nvidia.com", "v1alpha1", "NIMService"),
    ("kubeai.org", "v1", "Model"),
    ("production-stack.vllm.ai", "v1alpha1", "VLLMRuntime"),
    ("acme.io", "v1", "ModelServer"),
    ("acme.io", "v1", "Cache"),
    ("security.istio.io", "v1", "AuthorizationPolicy"),
    ("template.openshift.io", "v1", "Template"),
    ("apps.openshift.io", "v1", "DeploymentConfig"),
    ("monitoring.coreos.com", "v1", "PrometheusRule"),
    ("networking.istio.io", "v1", "VirtualService"),
    ("networking.istio.io", "v1alpha3", "EnvoyFilter"),
)
"""Kinds of controllers that aren't here: served without a schema."""


@dataclass(frozen=True)
class Answer:
    """What the API server said: `refused` in its own name or in a policy's; `told` are clause/rule of all findings."""

    status: int
    message: str
    told: frozenset[str]

    @property
    def clauses(self) -> set[str]:
        return {one.partition("/")[0] for one in self.told}


class Door:
    """Asks the API server."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    def call(self, method: str, path: str, body: Document | None = None, **headers: str) -> tuple[int, str, list[str]]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            response = self.client.call_api(
                path, method, body=body, header_params={"Content-Type": kind, "Accept": "application/json", **headers},
                auth_settings=["BearerToken"], _preload_content=False,
            )  # fmt: skip
        except ApiException as error:
            body_text = str(error.body)
            told = json.loads(body_text)["message"] if body_text.startswith("{") else body_text
            return int(error.status or 0), told, []
        return response.status, response.data.decode(), response.headers.getlist("Warning")

    def path(self, document: Document, namespace: str) -> str:
        version, kind = document["apiVersion"], document["kind"]
        plural = PLURALS.get(kind, kind.lower() + "s").replace("policys", "policies").replace("classs", "classes")
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        return f"{root}/{plural}" if kind in CLUSTER_WIDE else f"{root}/namespaces/{namespace}/{plural}"

    def ask(self, document: Document, namespace: str = TOLD) -> Answer:
        """A dry run of making an object."""
        asked = copy.deepcopy(document)
        asked.setdefault("metadata", {})
        if asked["kind"] not in CLUSTER_WIDE:
            asked["metadata"]["namespace"] = namespace
        complete(asked)
        status, message, warnings = self.call("POST", self.path(asked, namespace) + "?dryRun=All", asked)
        text = message if status >= 400 else " ".join(warnings)
        return Answer(status, text, frozenset(CLAUSE.findall(text)))

    def make(self, document: Document, namespace: str = SERVING) -> None:
        status, message, _ = self.call("POST", self.path(document, namespace), document)
        assert status < 300 or status == 409, message


def complete(document: Document) -> None:
    """What the API server requires and no gate looks at."""
    spec, kind = document.get("spec"), document["kind"]
    if not isinstance(spec, dict):
        return
    if kind in {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} and isinstance(spec.get("template"), dict):
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {"app": "x"})
        spec.setdefault("selector", {"matchLabels": dict(labels)})
    if kind in {"Job", "CronJob"}:
        job = spec if kind == "Job" else spec.get("jobTemplate", {}).get("spec", {})
        job.get("template", {}).get("spec", {}).setdefault("restartPolicy", "Never")
    if kind.endswith("Policy"):
        for one in spec.get("targetRefs", []):
            one.setdefault("group", "gateway.networking.k8s.io")
    for path, value in REQUIRED.get(kind, {}).items():
        _set(spec, path.split("/"), value)


SELECTORS = {f"{one}SelectorTerms": [{"tags": {"a": "b"}}] for one in ("subnet", "securityGroup")}
REQUIRED: dict[str, dict[str, Any]] = {
    "StatefulSet": {"serviceName": "x"},
    "CronJob": {"schedule": "0 0 * * *"},
    "EC2NodeClass": {**SELECTORS, "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "node"},
    "NodePool": {"template/spec/requirements": []},
    "Service": {"ports": [{"port": 80}]},
    "HTTPRoute": {"rules/*/backendRefs/*/port": 80},
    "HorizontalPodAutoscaler": {"scaleTargetRef/apiVersion": "apps/v1"},
    "Ingress": {
        "rules/*/http/paths/*/pathType": "Prefix",
        "rules/*/http/paths/*/backend/service/port": {"number": 80},
    },
}
"""Kind → paths below spec, each with what it gets where it says nothing."""


def _set(node: Any, path: list[str], value: Any) -> None:
    if path[0] == "*":
        for item in node if isinstance(node, list) else []:
            _set(item, path[1:], value)
    elif len(path) == 1:
        node.setdefault(path[0], copy.deepcopy(value))
    elif isinstance(node, dict) and path[0] in node:
        _set(node[path[0]], path[1:], value)


@contextmanager
def opened(folder: Path) -> Iterator[Door]:
    """A control plane with the policies; ends with the block."""
    with cluster(folder) as (_, _, kubeconfig):
        from tests.acceptance.cluster_client import api_client

        door = Door(api_client(kubeconfig))
        prepare(door)
        yield door


def prepare(door: Door) -> None:
    """Namespaces, missing kinds, policies and bindings; returns when they deny."""
    for group, version, kind in MISSING:
        door.make(_crd(group, version, kind))
    for name in (SERVING, TOLD):
        door.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for policy, bind in bound(Admission([SERVING], simulated=False)):
        door.make(policy)
        door.make(bind)
        if "matchResources" in bind["spec"]:
            told = binding(policy["metadata"]["name"], [TOLD])
            told["metadata"]["name"] += "-told"
            told["spec"]["validationActions"] = ["Warn"]
            door.make(told)
    container = {"name": "x", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    until("the policies deny", lambda: door.ask(bad, SERVING).status >= 400 and bool(door.ask(bad).told))


def _crd(group: str, version: str, kind: str) -> Document:
    plural = kind.lower() + "s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }
