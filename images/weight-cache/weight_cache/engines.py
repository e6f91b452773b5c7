"""The engines on one node, as their node's agent sees them."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from weight_cache.errors import PodError
from weight_cache.kube import Answer, Api


@dataclass(frozen=True)
class NodeEngines:
    """Engine pods of one node and namespace."""

    api: Api
    node: str
    namespace: str
    selector: str
    """Label selector of engine pods, such as app.kubernetes.io/name=engine."""

    @property
    def path(self) -> str:
        """Of the namespace in the API."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}"

    def pods(self) -> list[dict[str, Any]]:
        """All of them, also those that are over. Raises NodeError, PodError."""
        # Version 0: from the API server's cache, which has an index by node.
        query = urlencode(
            {"fieldSelector": f"spec.nodeName={self.node}", "labelSelector": self.selector, "resourceVersion": "0"}
        )
        answer = self.api.call("GET", f"{self.path}/pods?{query}")
        self.check(answer, f"list pods {self.selector}", "list", "pods")
        return answer.body["items"]

    def check(self, answer: Answer, what: str, verb: str, resource: str) -> None:
        """Raises PodError that says what was refused and, where it is that, which permission is missing."""
        if answer.status in {200, 201}:
            return
        advice = f"; the service account needs the verb {verb!r} on {resource}" if answer.status == 403 else ""
        raise PodError(f"{what} in {self.namespace}: HTTP {answer.status} {answer.message}{advice}")
