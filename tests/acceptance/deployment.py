"""One environment, deployed by the real engine: simulated AWS, a real API server, and no nodes.

Karpenter and Envoy Gateway aren't here. What Pulumi waits for because of them is played by `Controllers`: conditions of
the node class, Karpenter's finalizer on it (gone when the pool's instances are), and the load balancer of a Gateway.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import yaml
from kubernetes.client import ApiClient, ApiextensionsV1Api, CoreV1Api
from kubernetes.client.exceptions import ApiException

from srvmod.infra import identifiers
from srvmod.infra.labels import ENVOY_GATEWAY_NAMESPACE, PLAN_GROUP
from srvmod.infra.settings import Settings, load_stack_file
from srvmod.local import crds
from srvmod.local.kubeconfig import write_kubeconfig
from srvmod.local.pki import Authority
from srvmod.tools import crd_paths, ensure, prometheus_crds
from tests.acceptance.cluster_client import api_client
from tests.acceptance.controllers import Controllers

REPO = Path(__file__).parents[2]
START_SECONDS = 180
PULUMI_SECONDS = 900
CRD_ATTEMPTS, CONFLICT = 5, 409
"""A busy API server answers late or not at all; the second time the CRD may be there."""
TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager", "pulumi", "pulumi-resource-kubernetes")
PLAN_TOKEN = "eks-plan-token"
"""File with the token of a role that only plans, which an access entry puts into PLAN_GROUP."""
Change = Callable[[dict[str, Any]], None]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on at the moment."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@dataclass
class Deployment:
    """A deployed environment; `config` is its stack file's, as deployed."""

    env: str
    folder: Path
    config: dict[str, Any]
    variables: dict[str, str] = field(default_factory=dict)
    aws_url: str = ""
    kubeconfig: Path = Path()

    @property
    def settings(self) -> Settings:
        return load_stack_file(self.folder / "project" / f"Pulumi.{self.env}.yaml")

    def client(self, service: str) -> Any:
        """boto3 client of the simulated account."""
        return boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=self.aws_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def kubernetes(self) -> ApiClient:
        return api_client(self.kubeconfig)

    def pulumi(self, *args: str, config: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(ensure(["pulumi"])["pulumi"]), *args, "--non-interactive", "--color", "never"]
        if config is not None:
            command += ["--config-file", str(config)]
        done = subprocess.run(
            command,
            cwd=self.folder / "project",
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=PULUMI_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"pulumi {' '.join(args)}\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
        return done

    def changed(self, change: Change) -> Path:
        """A copy of the deployed stack file with `change` applied to its sections (without the project's prefix)."""
        document = yaml.safe_load((self.folder / "project" / f"Pulumi.{self.env}.yaml").read_text())
        sections = {key.removeprefix("srvmod:"): value for key, value in document["config"].items()}
        change(sections)
        document["config"] = {f"srvmod:{key}": value for key, value in sections.items()}
        file = self.folder / f"changed-{secrets.token_hex(4)}" / f"Pulumi.{self.env}.yaml"
        file.parent.mkdir()
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        return file

    def preview(self, change: Change) -> list[dict[str, Any]]:
        """The engine's steps for a changed stack file, those that leave a resource alone excepted."""
        file = self.changed(change)
        load_stack_file(file)  # a refusal is the case's mistake: it should say so before the engine does
        done = self.pulumi("preview", "--stack", self.env, "--json", config=file, check=False)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(done.stdout[-4000:] + done.stderr[-4000:]) from None
        errors = [d["message"] for d in answer.get("diagnostics", []) if d.get("severity") == "error"]
        assert done.returncode == 0, "\n".join(errors) or done.stderr[-4000:]
        return [step for step in answer["steps"] if step["op"] != "same"]


@contextlib.contextmanager
def running(command: Sequence[str | Path], log: Path, variables: dict[str, str] | None = None) -> Iterator[None]:
    """A process that ends with the block."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=variables
        )
    try:
        yield
        assert process.poll() is None, f"{command[0]} ended: {log.read_text()[-2000:]}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(what: str, probe: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    deadline, last = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        try:
            if probe():
                return
        except Exception as error:  # not up yet: the last word is in the message
            last = str(error)
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {seconds} s; {last}")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Authority, Path]]:
    """etcd, API server and controller manager on free ports: URL, authority, admin's kubeconfig."""
    tools = ensure(list(TOOLS))
    client_port, peer_port, api_port, manager_port = free_ports(4)
    pki = Authority(folder / "pki")
    serving = pki.issue("apiserver", "kube-apiserver", hosts=("127.0.0.1", "localhost", "kubernetes.default.svc"))
    admin = pki.issue("admin", "admin", ("system:masters",))
    public, private = pki.service_account_keys()
    token = folder / "eks-token"
    token.write_text(secrets.token_urlsafe(24))
    plan = folder / PLAN_TOKEN
    plan.write_text(secrets.token_urlsafe(24))
    (folder / "tokens.csv").write_text(
        f'{token.read_text()},pulumi,pulumi,"system:masters"\n{plan.read_text()},plan,plan,"{PLAN_GROUP}"\n'
    )
    url, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    api = f"https://127.0.0.1:{api_port}"
    kubeconfig = write_kubeconfig(folder / "kubeconfig", api, pki.cert_file, *admin)
    etcd = [tools["etcd"], f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}", "--unsafe-no-fsync=true", "--log-level=warn"]  # fmt: skip
    server = [tools["kube-apiserver"], f"--etcd-servers={url}", f"--secure-port={api_port}", "--bind-address=127.0.0.1",
              f"--tls-cert-file={serving[0]}", f"--tls-private-key-file={serving[1]}",
              f"--client-ca-file={pki.cert_file}", f"--token-auth-file={folder / 'tokens.csv'}",
              "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
              f"--service-account-key-file={public}", f"--service-account-signing-key-file={private}",
              "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16",
              "--allow-privileged=true"]  # fmt: skip
    manager = [tools["kube-controller-manager"], f"--kubeconfig={kubeconfig}", "--leader-elect=false",
               f"--secure-port={manager_port}", "--bind-address=127.0.0.1",
               f"--service-account-private-key-file={private}", f"--root-ca-file={pki.cert_file}",
               f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]  # fmt: skip
    with running(etcd, folder / "etcd.log"), running(server, folder / "kube-apiserver.log"):
        client = api_client(kubeconfig)
        until(
            "the API server is ready", lambda: client.call_api("/readyz", "GET", _preload_content=False).status == 200
        )
        _apply_crds(client, folder)
        with running(manager, folder / "kube-controller-manager.log"):
            yield api, pki, kubeconfig


def _apply_crds(client: ApiClient, folder: Path) -> None:
    api = ApiextensionsV1Api(client)

    def create(crd: dict[str, Any]) -> None:
        for left in reversed(range(CRD_ATTEMPTS)):
            try:
                api.create_custom_resource_definition(crd, _preload_content=False)
                return
            except ApiException as error:
                if error.status == CONFLICT:
                    return
                if not left:
                    raise

    wanted = crds.load([*crd_paths(), *prometheus_crds(("alertmanagerconfigs",))], folder)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, wanted))
    names = {crd["metadata"]["name"] for crd in wanted}

    def established() -> bool:
        found = api.list_custom_resource_definition().items
        states = {crd.metadata.name: {c.type: c.status for c in crd.status.conditions or []} for crd in found}
        return all(states.get(name, {}).get("Established") == "True" for name in names)

    until("CRDs are served", established)


@contextlib.contextmanager
def account(env: str, folder: Path, change: Change, *more: str | Path) -> Iterator[Deployment]:
    """A project with an environment's stack file, `change` applied to it, and simulated AWS as its account, with the
    keys and people that exist before any stack; nothing is deployed. `more` are arguments of simulated AWS."""
    project = folder / "project"
    (project / "infra").mkdir(parents=True)
    shutil.copy(REPO / "infra/__main__.py", project / "infra")
    shutil.copy(REPO / "Pulumi.yaml", project)
    document = yaml.safe_load((REPO / f"Pulumi.{env}.yaml").read_text())
    sections = {key.removeprefix("srvmod:"): value for key, value in document["config"].items()}
    change(sections)
    config = {f"srvmod:{key}": value for key, value in sections.items()}
    (project / f"Pulumi.{env}.yaml").write_text(yaml.safe_dump({"config": config}, sort_keys=False))
    deployment = Deployment(env, folder, config)
    settings = deployment.settings
    ready = folder / "aws.json"
    aws = [sys.executable, "-m", "srvmod.local.aws", "--port", "0", "--ready-file", ready,
           "--account", settings.aws.account_id, "--state", folder / "aws.journal", *more]  # fmt: skip
    with running(aws, folder / "aws.log"):
        until("simulated AWS is ready", ready.exists)
        deployment.aws_url = json.loads(ready.read_text())["url"]
        deployment.variables = _variables(deployment)
        keys = {name: f"key-of-{name}-0123456789" for name in settings.gateway.api_clients}
        deployment.client("secretsmanager").create_secret(
            Name=identifiers.api_keys_secret(settings), SecretString=json.dumps(keys)
        )
        _principals(deployment, settings)
        (folder / "backend").mkdir()
        deployment.pulumi("stack", "init", env)
        yield deployment


@contextlib.contextmanager
def deployed(env: str, folder: Path, change: Change) -> Iterator[tuple[Deployment, Controllers]]:
    """Deploy an environment with `change` applied to its stack file; everything ends with the block."""
    with (
        cluster(folder) as (api, pki, kubeconfig),
        account(env, folder, change, "--cluster-endpoint", api, "--cluster-ca", pki.cert_file) as deployment,
    ):
        deployment.kubeconfig = kubeconfig
        # An existing Envoy Gateway came with its namespace.
        CoreV1Api(deployment.kubernetes()).create_namespace({"metadata": {"name": ENVOY_GATEWAY_NAMESPACE}})
        with Controllers(deployment.kubernetes(), deployment.client) as controllers:
            deployment.pulumi("up", "--yes", "--skip-preview", "--stack", env)
            yield deployment, controllers


def _principals(deployment: Deployment, settings: Settings) -> None:
    """The roles of people and plans, which exist before any stack: EKS refuses an access entry for one that doesn't.
    The first of the admins deploys, as docs/first-day.md says."""
    cluster, trust = settings.cluster, json.dumps({"Version": "2012-10-17", "Statement": []})
    for arn in (*(admin.principal_arn for admin in cluster.admins), *cluster.plan_roles):
        if ":role/" in arn:
            deployment.client("iam").create_role(RoleName=arn.rpartition("/")[2], AssumeRolePolicyDocument=trust)
    deployer = cluster.admins[0].principal_arn if cluster.admins else ""
    if ":role/" in deployer:
        session = deployment.client("sts").assume_role(RoleArn=deployer, RoleSessionName="up")["Credentials"]
        deployment.variables |= {
            "AWS_ACCESS_KEY_ID": session["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
        }


def _variables(deployment: Deployment) -> dict[str, str]:
    folder, pulumi = deployment.folder, ensure(["pulumi", "pulumi-resource-kubernetes"])["pulumi"]
    path = f"{REPO / 'local/providers/bin'}:{pulumi.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "AWS_ENDPOINT_URL": deployment.aws_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SRVMOD_LOCAL_TOKEN_FILE": str(folder / "eks-token"),
        "SRVMOD_PYTHON": sys.executable,
    }
