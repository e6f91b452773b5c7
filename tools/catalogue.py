"""Every tool that is built here, once: where its pin lies, what is compiled, and how its version is read.

A tool's version is written in exactly one place, the go.mod of its folder under tools/modules; it is read from there.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from srvmod.tools import gomod, paths
from srvmod.tools.errors import ToolError

# Semantic version with an optional "v"; build metadata ("+k3s1", "+ds1") is no part of what is compared.
VERSION = r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)"
KUBERNETES_FLAGS = (
    "-X k8s.io/component-base/version.gitVersion=v{version} "
    "-X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}"
)
CNI = "github.com/containernetworking/plugins"
CONTAINERD = "github.com/containerd/containerd/v2"
PULUMI_KUBERNETES = "github.com/pulumi/pulumi-kubernetes/provider/v4"


@dataclass(frozen=True, slots=True)
class Program:
    """One binary: the main package and where it is installed, relative to the tools folder."""

    package: str
    output: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the catalogue.

    `home` is the folder (relative to the repository) with its go.mod, `module` the module whose version there is the
    pin; without one the tool is our own source and its version is made from that source. `version_args` is the
    command that is run to verify it; with `pattern` the version is read from what it prints, without it from the
    build information that Go puts into every binary (the command must still succeed). `embedded` maps file names
    beside the main package to files of `module` that take their place in the build. `at_least` accepts newer or
    older versions on PATH, down to the one it names. Tools of one `lane` are built one after another, because Go's
    build cache shares a package only once it is compiled.
    """

    name: str
    home: str
    module: str | None
    programs: tuple[Program, ...]
    purpose: str
    version_args: tuple[str, ...] = ("--version",)
    pattern: str | None = VERSION
    ldflags: str = ""
    tags: tuple[str, ...] = ()
    cgo: bool = False
    embedded: tuple[tuple[str, str], ...] = ()
    at_least: str | None = None
    on_path: bool = True
    on_demand: bool = False
    lane: str = "others"

    @property
    def folder(self) -> Path:
        """The folder with go.mod, absolute."""
        return paths.ROOT / self.home

    @property
    def version(self) -> str:
        """The pinned version, without a leading "v"."""
        if self.module is None:
            return f"0.0.0-{source_digest(self.folder)[:12]}"
        return gomod.version_of(self.folder / "go.mod", self.module).removeprefix("v")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The binaries once installed."""
        return tuple(paths.TOOLS / program.output for program in self.programs)

    @property
    def path(self) -> Path:
        """What a user of the tool is given: the binary, or the folder if there are several."""
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs[0].parent

    @property
    def linker_flags(self) -> str:
        """-ldflags with the version filled in; symbol tables are left out (a third of the size)."""
        major, minor, _ = self.version.split(".", 2)
        return f"-s -w {self.ldflags.format(version=self.version, major=major, minor=minor)}".strip()


@lru_cache
def source_digest(folder: Path) -> str:
    """sha256 over the names and bytes of the Go files of `folder`: changed pins or sources give another one."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.suffix == ".go" or path.name in ("go.mod", "go.sum")):
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _one(package: str, name: str) -> tuple[Program, ...]:
    return (Program(package, f"bin/{name}"),)


def _kubernetes(name: str, purpose: str) -> Tool:
    return Tool(
        name,
        "tools/modules/kubernetes",
        "k8s.io/kubernetes",
        _one(f"k8s.io/kubernetes/cmd/{name}", name),
        purpose,
        ldflags=KUBERNETES_FLAGS,
        lane="kubernetes",
    )


def _containerd(name: str, purpose: str, version_args: tuple[str, ...] = ("--version",)) -> Tool:
    return Tool(
        name,
        "tools/modules/containerd",
        CONTAINERD,
        _one(f"{CONTAINERD}/cmd/{name}", name),
        purpose,
        version_args=version_args,
        # The module's own path ends in /v2, so a looser pattern would still be right; this one also names the field.
        pattern=rf"(?:containerd/v2|Version:) +{VERSION}",
        ldflags=f"-X {CONTAINERD}/version.Version=v{{version}}",
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
    )


_ALL = (
    Tool(
        "etcd",
        "tools/modules/etcd",
        "go.etcd.io/etcd/server/v3",
        _one("go.etcd.io/etcd/server/v3", "etcd"),
        "store of the API server",
    ),
    _kubernetes("kube-apiserver", "API server"),
    _kubernetes("kube-scheduler", "scheduler"),
    _kubernetes("kube-controller-manager", "Deployments, DaemonSets, EndpointSlices, garbage collection"),
    _kubernetes("kubelet", "the pretended p5 nodes"),
    _containerd("containerd", "containers of the nodes"),
    _containerd("containerd-shim-runc-v2", "containers of the nodes", ("-v",)),
    _containerd("ctr", "imports the packed images"),
    Tool(
        "runc",
        "tools/modules/runc",
        "github.com/opencontainers/runc",
        _one("github.com/opencontainers/runc", "runc"),
        "containers of the nodes",
        pattern=rf"runc version {VERSION}",
        cgo=True,
        # What containerd 2.2 was run with; distributions ship it, and building it needs a C compiler.
        at_least="1.1.5",
    ),
    Tool(
        "cni",
        "tools/modules/cni",
        CNI,
        tuple(
            Program(f"{CNI}/plugins/{kind}", f"cni/bin/{kind.split('/')[-1]}")
            for kind in ("main/bridge", "main/loopback", "ipam/host-local")
        ),
        "pods' network interfaces (a folder: bridge, loopback, host-local)",
        pattern=rf"CNI \S+ plugin {VERSION}",
        ldflags=f"-X {CNI}/pkg/utils/buildversion.BuildVersion=v{{version}}",
        # Plugins are kept in a folder of their own, never on PATH.
        on_path=False,
    ),
    Tool(
        "karpenter-aws",
        "tools/modules/kubernetes",
        "github.com/aws/karpenter-provider-aws",
        _one("github.com/aws/karpenter-provider-aws/kwok", "karpenter-aws"),
        "Karpenter for AWS that pretends to launch (its kwok build)",
        version_args=("--help",),
        pattern=None,
        ldflags="-X sigs.k8s.io/karpenter/pkg/operator.Version={version}",
        lane="kubernetes",
    ),
    Tool(
        "pulumi",
        "tools/modules/pulumi",
        "github.com/pulumi/pulumi/pkg/v3",
        _one("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", "pulumi"),
        "the engine behind `pulumi up`",
        version_args=("version",),
        ldflags="-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{version}",
        tags=("osusergo", "grpcnotrace"),
    ),
    Tool(
        "pulumi-resource-kubernetes",
        "tools/modules/pulumi-kubernetes",
        PULUMI_KUBERNETES,
        _one(".", "pulumi-resource-kubernetes"),
        "Pulumi's Kubernetes provider",
        version_args=("-help",),
        pattern=None,
        ldflags=f"-X {PULUMI_KUBERNETES}/pkg/version.Version={{version}}",
        tags=("osusergo", "grpcnotrace"),
        embedded=tuple(
            (name, f"cmd/pulumi-resource-kubernetes/{name}") for name in ("schema.json", "terraform-mapping.json")
        ),
    ),
    Tool(
        "envoy-gateway",
        "tools/modules/envoy-gateway",
        "github.com/envoyproxy/gateway",
        _one("github.com/envoyproxy/gateway/cmd/envoy-gateway", "envoy-gateway"),
        "the gateway's controller",
        version_args=("version",),
        pattern=rf"ENVOY_GATEWAY_VERSION: {VERSION}",
        ldflags="-X github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=v{version}",
        lane="kubernetes",
    ),
    Tool(
        "kwok",
        "tools/modules/kubernetes",
        "sigs.k8s.io/kwok",
        _one("sigs.k8s.io/kwok/cmd/kwok", "kwok"),
        "nodes beyond the first two",
        lane="kubernetes",
    ),
    Tool(
        "coredns",
        "tools/modules/coredns",
        "github.com/coredns/coredns",
        _one(".", "coredns"),
        "names inside the cluster",
        version_args=("-version",),
        pattern=rf"CoreDNS-{VERSION}",
    ),
    Tool(
        "crane",
        "tools/modules/crane",
        "github.com/google/go-containerregistry",
        _one("github.com/google/go-containerregistry/cmd/crane", "crane"),
        "packs images from local files",
        version_args=("version",),
        ldflags="-X github.com/google/go-containerregistry/cmd/crane/cmd.Version=v{version}",
    ),
    Tool(
        "pretend-gpu-plugin",
        "local/nodes/pretend-gpu-plugin",
        None,
        _one(".", "pretend-gpu-plugin"),
        "8 pretended GPUs per node",
        ldflags="-X main.version={version}",
        on_path=False,
    ),
    Tool(
        "helm",
        "tools/modules/helm",
        "helm.sh/helm/v4",
        _one("helm.sh/helm/v4/cmd/helm", "helm"),
        "renders other people's charts in tests",
        version_args=("version", "--short"),
        ldflags="-X helm.sh/helm/v4/internal/version.version=v{version}",
        on_demand=True,
    ),
    Tool(
        "actionlint",
        "tools/modules/actionlint",
        "github.com/rhysd/actionlint",
        _one("github.com/rhysd/actionlint/cmd/actionlint", "actionlint"),
        "checks .github/workflows",
        version_args=("-version",),
        ldflags="-X github.com/rhysd/actionlint.version=v{version}",
        on_demand=True,
    ),
    Tool(
        "kube-score",
        "tools/modules/kube-score",
        "github.com/zegl/kube-score",
        _one("github.com/zegl/kube-score/cmd/kube-score", "kube-score"),
        "checks the rendered Kubernetes objects",
        version_args=("version",),
        ldflags="-X main.version={version}",
        on_demand=True,
    ),
)

TOOLS_BY_NAME = {tool.name: tool for tool in _ALL}
# What `srvmod tools` builds when no name is given: all that the local stack runs.
LOCAL_STACK = tuple(tool.name for tool in _ALL if not tool.on_demand)


def select(names: Iterable[str]) -> tuple[Tool, ...]:
    """The tools with these names, each once. Raises ToolError that names an unknown one and what is allowed."""
    chosen: dict[str, Tool] = {}
    for name in names:
        if name not in TOOLS_BY_NAME:
            near = difflib.get_close_matches(name, TOOLS_BY_NAME, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ToolError(f"no tool is called {name!r}", f"{hint}allowed: {', '.join(sorted(TOOLS_BY_NAME))}")
        chosen[name] = TOOLS_BY_NAME[name]
    return tuple(chosen.values())
