"""Who reaches the weight cache."""

from srvmod.infra.labels import NAMESPACE_LABEL, WEIGHT_CACHE, Object, metadata, selector


def weight_cache_policy(namespace: str, metrics_namespace: str) -> Object:
    """Only Prometheus reaches its port, which answers probes and scrapes; a node's own kubelet always does
    (kubernetes.io/docs/concepts/services-networking/network-policies). Its ways out stay open: it asks S3, the API
    server and the agent that gives it a role."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(WEIGHT_CACHE, namespace),
        "spec": {
            "podSelector": {"matchLabels": selector(WEIGHT_CACHE)},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: metrics_namespace}}}],
                    "ports": [{"port": "status", "protocol": "TCP"}],
                }
            ],
        },
    }
