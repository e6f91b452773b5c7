"""Every version that the program installs, once, with where it was read.

A version that also runs in the local stack is the same there; a test compares the two.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Chart:
    """A Helm chart: `repository` is an OCI registry path or an https chart repository."""

    name: str
    version: str
    repository: str

    @property
    def reference(self) -> str:
        """What `helm install` takes as chart for an OCI repository."""
        return f"{self.repository}/{self.name}"


@dataclass(frozen=True)
class Image:
    """A container image by repository (with its registry), tag and the digest of its index for all platforms."""

    repository: str
    tag: str
    digest: str | None = None

    @property
    def tagged(self) -> str:
        """`repository:tag`: how images that are packed locally are named."""
        return f"{self.repository}:{self.tag}"

    @property
    def reference(self) -> str:
        """`repository:tag@digest`, as far as the digest is known: what is pulled."""
        return f"{self.tagged}@{self.digest}" if self.digest else self.tagged


@dataclass(frozen=True)
class Addon:
    """An EKS add-on of one cluster version."""

    name: str
    version: str


KUBERNETES = "1.36"
"""EKS version: 1.36 is the newest with an AL2023 NVIDIA image (amazon-eks-ami v20260714); 1.34 leaves standard
support on 2026-12-02."""

AMI_ALIAS = "al2023@v20260714"
"""Karpenter's AMI alias, pinned: driver 580.159.03 with fabric manager, containerd 2.2.4 (amazon-eks-ami
releases). `@latest` would drift every node on every AMI release."""

KARPENTER = Chart("karpenter", "1.14.0", "oci://public.ecr.aws/karpenter")
KARPENTER_CRDS = Chart("karpenter-crd", "1.14.0", "oci://public.ecr.aws/karpenter")
"""github.com/aws/karpenter-provider-aws v1.14.0: the version that the local stack runs."""

ENVOY_GATEWAY = Chart("gateway-helm", "v1.9.1", "oci://docker.io/envoyproxy")
"""github.com/envoyproxy/gateway v1.9.1; its chart carries the Gateway API's CRDs (v1.6.1) and its own."""

LOAD_BALANCER_CONTROLLER = Chart("aws-load-balancer-controller", "3.5.0", "https://aws.github.io/eks-charts")
"""Chart and controller have the same version since 3.0; the charts of this and the next two are not templated in
tests, their files can't be had from a Go module."""

KEDA = Chart("keda", "2.21.0", "https://kedacore.github.io/charts")
"""github.com/kedacore/keda v2.21.0."""

KARPENTER_IMAGE = Image(
    "public.ecr.aws/karpenter/controller",
    "1.14.0",
    "sha256:ea731b0cd813add8b2947a76bfe861c38069d85922b01d0c1647d1466279b7fe",
)
"""What the chart's own values name."""

LOAD_BALANCER_CONTROLLER_IMAGE = Image("public.ecr.aws/eks/aws-load-balancer-controller", "v3.5.0")
KEDA_IMAGES = (
    Image("ghcr.io/kedacore/keda", "2.21.0"),
    Image("ghcr.io/kedacore/keda-metrics-apiserver", "2.21.0"),
    Image("ghcr.io/kedacore/keda-admission-webhooks", "2.21.0"),
)
"""What these charts run by their documentation, for `srvmod images` alone: their values keep the charts' own tags."""

PROMETHEUS_STACK = Chart("kube-prometheus-stack", "92.1.0", "https://prometheus-community.github.io/helm-charts")
PROMETHEUS_OPERATOR = "v0.94.1"
"""The operator of that chart, whose custom resources the program declares."""

ENVOY_GATEWAY_IMAGE = Image(
    "docker.io/envoyproxy/gateway",
    "v1.9.1",
    "sha256:0049bcb384c591c6a6dd043fe5c9929ef6e74f230e12dd678d2d3701df9b301e",
)
"""The chart's own controller image. Its digest and those of NVIDIA's images are the ones that several public
repositories have beside the tag (read 2026-11-29); no registry was asked."""

ENVOY = Image(
    "docker.io/envoyproxy/envoy",
    "distroless-v1.39.1",
    "sha256:eb2c01c13125d1629637cb4e4cce7207009fb7cc2c8027f9742758549d15b6f4",
)
"""What Envoy Gateway 1.9.1 starts by itself, with the digest that its source has (DefaultEnvoyProxyImage)."""

NVIDIA_DEVICE_PLUGIN = Image(
    "nvcr.io/nvidia/k8s-device-plugin",
    "v0.20.0",
    "sha256:a61ba9fd8efb82f3a79f877f7580e02c1e8e7593f62473644bc9c79e315c3312",
)
"""github.com/NVIDIA/k8s-device-plugin v0.20.0 (2026-08-19)."""

DCGM_EXPORTER = Image(
    "nvcr.io/nvidia/k8s/dcgm-exporter",
    "4.5.3-4.8.2-distroless",
    "sha256:60d3b00ac80b4ae77f94dae2f943685605585ad9e92fdccda3154d009ae317cc",
)
"""github.com/NVIDIA/dcgm-exporter 4.8.2 with DCGM 4.5.3: the minor version of the node monitoring agent's engine
(4.5.2), and the last whose field names are those of documents/dcgm_exporter.py. Only distroless images are released
(github.com/NVIDIA/dcgm-exporter/issues/703)."""

VLLM = Image("docker.io/vllm/vllm-openai", "v0.33.0")
"""github.com/vllm-project/vllm v0.33.0; the flags of serving/documents/engine_flags.py are this version's. No public
source for its digest was found: the stack's settings name the image, with the digest of the mirror's copy."""

ADDONS = (
    Addon("vpc-cni", "v1.22.4-eksbuild.3"),
    Addon("kube-proxy", "v1.36.0-eksbuild.21"),
    Addon("coredns", "v1.14.3-eksbuild.16"),
    Addon("eks-pod-identity-agent", "v1.3.10-eksbuild.3"),
    Addon("eks-node-monitoring-agent", "v1.7.0-eksbuild.1"),
    Addon("metrics-server", "v0.9.0-eksbuild.11"),
)
"""What a 1.36 cluster resolved its default add-ons to (public deployment records read 2026-11-29; the monitoring
agent's build number is its release's first). `srvmod preflight` asks the account itself before the first `up`."""
