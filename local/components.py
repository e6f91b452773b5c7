"""What runs inside the stack's namespaces: one entry per process, its order and how its health is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from srvmod.local import facts
from srvmod.local.health import HealthCheck, aws_health, http_health
from srvmod.local.kubeconfig import write_kubeconfig
from srvmod.local.paths import State
from srvmod.local.pki import Authority

XDS_NAME = "envoy-gateway.envoy-gateway-system.svc.cluster.local"


@dataclass(frozen=True)
class Component:
    """One process. `after` names components that must be healthy first."""

    name: str
    argv: tuple[str, ...]
    health: HealthCheck
    after: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()


def _flags(binary: Path | str, **flags: str | int | Path) -> tuple[str, ...]:
    return (str(binary), *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items()))


class Plan:
    """Builds the components of one stack from its tools, certificates and ports."""

    def __init__(self, state: State, tools: Mapping[str, Path], listeners: Mapping[str, int]) -> None:
        self.state, self.tools, self.listeners = state, tools, listeners
        self.authority = Authority(state.pki)
        self.server = f"https://{facts.BRIDGE_ADDRESS}:{facts.API_PORT}"
        self.aws_url = f"http://{facts.BRIDGE_ADDRESS}:{facts.AWS_PORT}"

    def client(self, file: str, user: str, *groups: str) -> Path:
        """Kubeconfig of one component, with a certificate of its own."""
        cert, key = self.authority.issue(file, user, groups)
        return write_kubeconfig(self.state.pki / f"{file}.kubeconfig", self.server, self.authority.cert_file, cert, key)

    def components(self) -> list[Component]:
        return [
            *self._control_plane(),
            self._aws(),
            self._dns(),
            self._relay(),
            self._kwok(),
            self._karpenter(),
            self._envoy_gateway(),
            self._launcher(),
            self._scaler(),
        ]

    def _control_plane(self) -> list[Component]:
        pki, tools = self.authority, self.tools
        data = self.state.live / "etcd"
        serving_cert, serving_key = pki.issue(
            "apiserver",
            "kube-apiserver",
            hosts=(
                "127.0.0.1",
                "localhost",
                facts.BRIDGE_ADDRESS,
                facts.API_SERVICE_ADDRESS,
                "kubernetes.default.svc",
                "kubernetes.default",
                "kubernetes.default.svc.cluster.local",
            ),
        )
        kubelet_cert, kubelet_key = pki.issue(
            "apiserver-kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",)
        )
        health_cert = pki.issue("health", "srvmod-health", ("system:masters",))
        public, private = pki.service_account_keys()
        etcd_url, peer_url = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        etcd = Component(
            "etcd",
            _flags(
                tools["etcd"],
                data_dir=data,
                listen_client_urls=etcd_url,
                advertise_client_urls=etcd_url,
                listen_peer_urls=peer_url,
                initial_advertise_peer_urls=peer_url,
                initial_cluster=f"default={peer_url}",
                # one disposable member on a shared disk: losing the last second at power loss is fine, slow fsync isn't
                unsafe_no_fsync="true",
                logger="zap",
                log_level="warn",
            ),
            http_health(f"{etcd_url}/health"),
        )
        api_server = Component(
            "kube-apiserver",
            _flags(
                tools["kube-apiserver"],
                etcd_servers=etcd_url,
                secure_port=facts.API_PORT,
                bind_address="0.0.0.0",
                advertise_address=facts.BRIDGE_ADDRESS,
                tls_cert_file=serving_cert,
                tls_private_key_file=serving_key,
                client_ca_file=pki.cert_file,
                token_auth_file=self.state.pki / "tokens.csv",
                kubelet_client_certificate=kubelet_cert,
                kubelet_client_key=kubelet_key,
                kubelet_preferred_address_types="InternalIP",
                service_account_issuer="https://kubernetes.default.svc.cluster.local",
                service_account_key_file=public,
                service_account_signing_key_file=private,
                authorization_mode="Node,RBAC",
                enable_admission_plugins="NodeRestriction",
                service_cluster_ip_range=facts.SERVICE_CIDR,
                allow_privileged="true",
                profiling="false",
            ),
            http_health(f"https://127.0.0.1:{facts.API_PORT}/readyz", ca=pki.cert_file, cert=health_cert),
            env={"GOGC": "300"},  # its start makes much and keeps little: memory for a seventh of its time
            after=("etcd",),
        )
        scheduler_config = self.client("scheduler", "system:kube-scheduler")
        scheduler = Component(
            "kube-scheduler",
            _flags(
                tools["kube-scheduler"],
                kubeconfig=scheduler_config,
                leader_elect="false",
                bind_address="127.0.0.1",
                secure_port=10259,
                authentication_kubeconfig=scheduler_config,
                authorization_kubeconfig=scheduler_config,
            ),
            http_health("https://127.0.0.1:10259/healthz"),
            after=("kube-apiserver",),
        )
        manager_config = self.client("controller-manager", "system:kube-controller-manager")
        manager = Component(
            "kube-controller-manager",
            _flags(
                tools["kube-controller-manager"],
                kubeconfig=manager_config,
                leader_elect="false",
                bind_address="127.0.0.1",
                secure_port=10257,
                authentication_kubeconfig=manager_config,
                authorization_kubeconfig=manager_config,
                service_account_private_key_file=private,
                root_ca_file=pki.cert_file,
                use_service_account_credentials="true",
                concurrent_deployment_syncs=2,
                # its type check of admission policies takes 18 CPU seconds and changes no verdict
                controllers="*,-validatingadmissionpolicy-status-controller",
            ),
            http_health("https://127.0.0.1:10257/healthz"),
            after=("kube-apiserver",),
        )
        return [etcd, api_server, scheduler, manager]

    def _aws(self) -> Component:
        argv = (
            sys.executable,
            "-m",
            "srvmod.local.aws",
            "--host",
            facts.BRIDGE_ADDRESS,
            "--port",
            str(facts.AWS_PORT),
            "--cluster-endpoint",
            os.environ["SRVMOD_LOCAL_API_URL"],
            "--cluster-ca",
            str(self.authority.cert_file),
            "--state",
            str(self.state.aws_journal),
        )
        return Component("simulated-aws", argv, aws_health(self.aws_url))

    def _dns(self) -> Component:
        corefile = self.state.run / "Corefile"
        corefile.write_text(
            f".:53 {{\n  bind {facts.BRIDGE_ADDRESS}\n  health 127.0.0.1:8053\n  hosts {{\n"
            f"    {facts.BRIDGE_ADDRESS} {XDS_NAME}\n"
            f"    {facts.API_SERVICE_ADDRESS} kubernetes.default.svc.cluster.local\n  }}\n  errors\n}}\n"
        )
        return Component(
            "coredns", (str(self.tools["coredns"]), "-conf", str(corefile)), http_health("http://127.0.0.1:8053/health")
        )

    def _relay(self) -> Component:
        kubeconfig = self.client("load-balancer", "srvmod-load-balancer", "system:masters")
        fds = ",".join(f"{name}={fd}" for name, fd in sorted(self.listeners.items()))
        return Component(
            "load-balancer",
            (sys.executable, "-m", "srvmod.local.load_balancer", "--listeners", fds, "--kubeconfig", str(kubeconfig)),
            http_health("http://127.0.0.1:9180/healthz"),
            pass_fds=tuple(self.listeners.values()),
            after=("kube-apiserver",),
        )

    def _kwok(self) -> Component:
        from srvmod.tools import kwok_stages

        kubeconfig = self.client("kwok", "srvmod-kwok", "system:masters")
        argv = _flags(
            self.tools["kwok"],
            kubeconfig=kubeconfig,
            manage_all_nodes="false",
            # by label: kwok never takes the lease of a Node whose annotation comes after its creation
            manage_nodes_with_label_selector="srvmod.dev/pretended=true",
            node_lease_duration_seconds=40,
            server_address="127.0.0.1:10247",
        )
        for stage in kwok_stages():
            argv += (f"--config={stage}",)
        return Component(
            "kwok",
            argv,
            http_health("http://127.0.0.1:10247/healthz"),
            after=("kube-apiserver",),
        )

    def _karpenter(self) -> Component:
        kubeconfig = self.client("karpenter", "srvmod-karpenter", "system:masters")
        env = {
            "CLUSTER_NAME": facts.CLUSTER_NAME,
            "CLUSTER_ENDPOINT": self.server,
            "INTERRUPTION_QUEUE": f"{facts.CLUSTER_NAME}-interruption",
            "SYSTEM_NAMESPACE": "kube-system",
            "KUBECONFIG": str(kubeconfig),
            "DISABLE_LEADER_ELECTION": "true",
            "FEATURE_GATES": "ReservedCapacity=true",
            "BATCH_IDLE_DURATION": "1s",
            "BATCH_MAX_DURATION": "5s",
            "LOG_LEVEL": "info",
        }
        argv = (
            sys.executable,
            "-m",
            "srvmod.local.karpenter",
            str(self.tools["karpenter-aws"]),
            "--metrics-port",
            "18080",
            "--health-probe-port",
            "18081",
        )
        return Component(
            "karpenter",
            argv,
            http_health("http://127.0.0.1:18081/healthz"),
            env=env,
            after=("kube-apiserver", "simulated-aws"),
        )

    def _envoy_gateway(self) -> Component:
        kubeconfig = self.client("envoy-gateway", "srvmod-envoy-gateway", "system:masters")
        config = self.state.run / "envoy-gateway.yaml"
        config.write_text(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyGateway\n"
            "gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}\n"
            "provider:\n  type: Kubernetes\n  kubernetes:\n"
            '    shutdownManager: {image: "docker.io/envoyproxy/gateway:v1.9.1"}\n    leaderElection: {disable: true}\n'
            "logging: {level: {default: info}}\n"
        )
        argv = (
            sys.executable,
            "-m",
            "srvmod.local.envoy_gateway",
            str(self.tools["envoy-gateway"]),
            str(config),
            str(self.state.crds_applied),
        )
        env = {"KUBECONFIG": str(kubeconfig), "ENVOY_GATEWAY_NAMESPACE": "envoy-gateway-system"}
        return Component(
            "envoy-gateway", argv, http_health("http://127.0.0.1:8081/healthz"), env=env, after=("kube-apiserver",)
        )

    def _launcher(self) -> Component:
        kubeconfig = self.client("node-launcher", "srvmod-node-launcher", "system:masters")
        argv = (
            sys.executable,
            "-m",
            "srvmod.local.nodes",
            "launcher",
            "--state",
            str(self.state.root),
            "--kubeconfig",
            str(kubeconfig),
        )
        return Component("node-launcher", argv, http_health("http://127.0.0.1:9181/healthz"), after=("kube-apiserver",))

    def _scaler(self) -> Component:
        kubeconfig = self.client("scaler", "srvmod-simulated-scaler", "system:masters")
        return Component(
            "simulated-scaler",
            (sys.executable, "-m", "srvmod.local.scaler", str(kubeconfig)),
            http_health("http://127.0.0.1:9182/healthz"),
            after=("kube-apiserver",),
        )
