"""Findings of checkov, parliament and kube-score that stand, each with its reason. `python -m tests.lint` compares.

A waiver that no finding needs any more is an error there, so that the list can't outlive its reasons.
"""

from dataclasses import dataclass

CHECKOV, PARLIAMENT, KUBE_SCORE = "checkov", "parliament", "kube-score"


@dataclass(frozen=True)
class Waiver:
    """`check` of `tool` stands for resources whose name contains one of `where`."""

    tool: str
    check: str
    where: tuple[str, ...]
    reason: str


ENGINE, CACHE = "Deployment.serving.engine", "DaemonSet.serving.weight-cache"
PLUGIN, EXPORTER = "DaemonSet.kube-system.nvidia-device-plugin", "DaemonSet.kube-system.dcgm-exporter"
POD_OF = ("Pod.kube-system.dcgm-exporter", "Pod.kube-system.nvidia-device-plugin", "Pod.serving.weight-cache")
KEYS = ("key-",)


def _checkov(check: str, where: tuple[str, ...], reason: str) -> Waiver:
    return Waiver(CHECKOV, check, where, reason)


def _kube_score(check: str, where: tuple[str, ...], reason: str) -> Waiver:
    return Waiver(KUBE_SCORE, check, where, reason)


def _parliament(check: str, where: tuple[str, ...], reason: str) -> Waiver:
    return Waiver(PARLIAMENT, check, where, reason)


WAIVERS: tuple[Waiver, ...] = (
    # AWS resources
    _checkov(
        "CKV_AWS_18",
        ("AWS::S3::Bucket.AWSS3Bucketsrvmod",),
        "the log bucket itself: logging it into itself would never end",
    ),
    _checkov(
        "CKV_AWS_27",
        ("interruption",),
        "the queue is encrypted under SQS's own key (SSE-SQS), which the check doesn't count; a key of ours would have "
        "to be opened to EventBridge, and messages hold instance ids for at most 300 s",
    ),
    # Kubernetes objects
    _checkov(
        "CKV2_K8S_6",
        POD_OF,
        "daemons of nodes: on the host's network or without a port that anything in the cluster could reach",
    ),
    _checkov(
        "CKV_K8S_11",
        (PLUGIN, EXPORTER, CACHE),
        "a CPU limit would throttle work that engines wait for (filling NVMe, allocating GPUs) beside 88 idle CPUs",
    ),
    _checkov(
        "CKV_K8S_15",
        (ENGINE, CACHE),
        "tags in our repositories are immutable and third parties' images pinned: asking the registry again before "
        "each start would make its availability ours",
    ),
    _checkov(
        "CKV_K8S_43",
        (ENGINE, CACHE),
        "the engine's image is the operator's setting, which takes a digest; the cache's tag is immutable in ECR",
    ),
    _checkov(
        "CKV_K8S_16",
        (PLUGIN,),
        "it hands GPUs and their NUMA nodes to the kubelet: NVIDIA's plugin needs the devices and the kubelet's socket",
    ),
    _checkov("CKV_K8S_20", (PLUGIN,), "privileged, as above"),
    _checkov("CKV_K8S_28", (PLUGIN,), "privileged, as above"),
    _checkov("CKV_K8S_31", (PLUGIN,), "privileged, as above"),
    _checkov("CKV_K8S_37", (PLUGIN,), "privileged, as above"),
    _checkov("CKV_K8S_8", (PLUGIN,), "it has no port; the kubelet sees it die with its socket and the GPUs go to zero"),
    _checkov("CKV_K8S_9", (PLUGIN,), "it has no port; ready means registered with the kubelet, which needs no probe"),
    _checkov(
        "CKV_K8S_22",
        (PLUGIN, EXPORTER, ENGINE),
        "NVIDIA's programs and vLLM (compilation caches, its user's home) write into folders of their images",
    ),
    _checkov(
        "CKV_K8S_23",
        (PLUGIN, EXPORTER, CACHE, ENGINE),
        "the images' own users: devices, the kubelet's sockets and the host's NVMe folder belong to root on EKS nodes",
    ),
    _checkov(
        "CKV_K8S_29", (PLUGIN, EXPORTER, CACHE, ENGINE), "run as root, as above; each container has its own context"
    ),
    _checkov("CKV_K8S_40", (PLUGIN, EXPORTER, CACHE, ENGINE), "run as root, as above"),
    _checkov("CKV_K8S_38", (CACHE,), "it lifts the startup taint of its node and patches pods' deletion cost"),
    # Kubernetes objects, by kube-score
    _kube_score(
        "container-ephemeral-storage-request-and-limit",
        (ENGINE, CACHE, PLUGIN, EXPORTER),
        "the kubelet enforces it by evicting the pod, which would end an engine's streams; a node's 28 TB of NVMe hold "
        "two engines and these daemons alone, and nodefs eviction guards the node",
    ),
    _kube_score(
        "container-image-pull-policy", (ENGINE, CACHE, PLUGIN, EXPORTER), "as CKV_K8S_15: what is pinned stays"
    ),
    _kube_score(
        "container-security-context-user-group-id", (ENGINE, CACHE, PLUGIN, EXPORTER), "run as root, as CKV_K8S_23"
    ),
    _kube_score(
        "container-security-context-readonlyrootfilesystem", (PLUGIN, EXPORTER, ENGINE), "as CKV_K8S_22: they write"
    ),
    _kube_score("container-security-context-privileged", (PLUGIN,), "privileged, as CKV_K8S_16"),
    _kube_score("container-resources", (PLUGIN, EXPORTER, CACHE), "no CPU limit, as CKV_K8S_11"),
    _kube_score("pod-networkpolicy", (PLUGIN, EXPORTER, CACHE), "daemons of nodes, as CKV2_K8S_6"),
    _kube_score(
        "pod-probes-identical",
        (ENGINE, EXPORTER),
        "one path tells health; the check compares paths alone: liveness waits minutes, readiness seconds",
    ),
    _kube_score(
        "deployment-has-host-podantiaffinity",
        (ENGINE,),
        "two engines belong on one node, one on each of its islands (MC-HW-01)",
    ),
    _kube_score(
        "deployment-replicas", (ENGINE,), "replicas belong to the scaler, whose minimum is the plan's; two at the least"
    ),
    # IAM documents
    _parliament("RESOURCE_STAR", KEYS, "in a key's policy `*` is the key itself"),
    _parliament(
        "UNKNOWN_CONDITION_FOR_ACTION",
        ("controller-load-balancers",),
        "elasticloadbalancing:CreateAction is in AWS's reference for AddTags; the tool's list is older",
    ),
    _parliament(
        "RESOURCE_MISMATCH",
        ("images-and-prices",),
        "AWS's own parameters have no account in their ARN, which the tool's pattern doesn't foresee",
    ),
    _parliament(
        "RESOURCE_MISMATCH",
        ("controller-load-balancers",),
        "the tool wants listeners of application load balancers too; the controller makes network ones only",
    ),
    _parliament(
        "RESOURCE_MISMATCH",
        ("node-lifecycle", "security-groups"),
        "the action needs several kinds of resources, which different statements allow; the tool judges each alone",
    ),
)
