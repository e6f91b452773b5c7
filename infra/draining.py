"""How long things may take to end: one place, since each limit has to outlast the one inside it.

An engine ends its streams within its pod's grace period; Karpenter waits longer than that before it buys a node for the
engine that takes its place. Envoy drains for as long as its longest stream; load balancer and node update wait longer.
"""

PRE_STOP_SECONDS = 15
"""Time for Envoy to hear that the pod is going before the server stops taking requests."""
TEARDOWN_SECONDS = 30
"""Beyond the last stream: vLLM takes about 9 s to end its workers."""

PLACING_SECONDS = 15
"""From the end of an engine's pod to its island's next pod being placed: kubelet, controller and scheduler."""
WINDOWS = 3
"""Each new pod starts a window of waiting again; this many follow each other before Karpenter decides anyway."""

NODE_UPDATE_SECONDS = 15 * 60
"""How long the update of a managed node group waits for the pods of a node before it fails with PodEvictionFailure
(docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html)."""
CLOSING_SECONDS = 60
"""Around Envoy's longest stream: readiness fails first, and the last connections close."""
LONGEST_STREAM_SECONDS = NODE_UPDATE_SECONDS - CLOSING_SECONDS


def engine_grace_seconds(shutdown_timeout_seconds: int) -> int:
    """Grace period of an engine's pod: preStop, then vLLM's own drain, then the end of its workers."""
    return PRE_STOP_SECONDS + shutdown_timeout_seconds + TEARDOWN_SECONDS


def node_wait_seconds(shutdown_timeout_seconds: int) -> int:
    """How long Karpenter waits after a pod became pending before it buys a node.

    In a rollout the new engine is pending while the old one drains, and Karpenter counts the GPUs of a pod that ends as
    taken (pkg/controllers/state/cluster.go of Karpenter 1.14): it would buy a p5 for each replaced engine. After this
    time the old one is gone, the scheduler has used its island, and nothing is pending.
    """
    return engine_grace_seconds(shutdown_timeout_seconds) + PLACING_SECONDS


def unhealthy_target_seconds(longest_stream_seconds: int) -> int:
    """How long a load balancer keeps the connections of an Envoy that drains."""
    return longest_stream_seconds + CLOSING_SECONDS
