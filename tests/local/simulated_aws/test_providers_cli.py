"""The plain `pulumi` command with these plugins on PATH: small programs against a simulated AWS in its own process."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import PLUGINS, Cli, Simulation, environment, until

pytestmark = pytest.mark.acceptance

PROGRAM = """
import json
import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
from srvmod.infra.aws.access import without_hidden_admin

config = pulumi.Config()
provider = aws.Provider("aws", region="us-east-1")
opts = pulumi.ResourceOptions(provider=provider)
vpc = aws.ec2.Vpc("main", cidr_block="10.20.0.0/16", enable_dns_hostnames=True, tags={"Name": "main"}, opts=opts)
subnets = [
    aws.ec2.Subnet(zone, vpc_id=vpc.id, cidr_block=f"10.20.{i}.0/24", availability_zone=f"us-east-1{zone}",
                   tags={"karpenter.sh/discovery": "demo"}, opts=opts)
    for i, zone in enumerate("ab")
]
trust = {"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
role = aws.iam.Role("control-plane", assume_role_policy=json.dumps(trust), opts=opts)
cluster = eks.Cluster(
    "demo", name="demo", version="1.36", vpc_id=vpc.id, private_subnet_ids=[s.id for s in subnets], service_role=role,
    skip_default_node_group=True, skip_default_security_groups=True, authentication_mode="API",
    endpoint_private_access=True, endpoint_public_access=False, create_oidc_provider=False,
    use_default_vpc_cni=True, kube_proxy_addon_options={"enabled": False}, coredns_addon_options={"enabled": False},
    bootstrap_self_managed_addons=False, opts=pulumi.ResourceOptions(
        providers={"aws": provider}, transforms=None if config.get_bool("hiddenAdmin") else [without_hidden_admin]),
)
aws.eks.AccessEntry("nodes", cluster_name=cluster.eks_cluster.name, type=config.get("type") or "EC2_LINUX",
                    principal_arn=config.get("principal") or role.arn, opts=opts)
queue = aws.sqs.Queue("interruption", message_retention_seconds=config.get_int("retention") or 300, opts=opts)
pulumi.export("kubeconfig", cluster.kubeconfig)
pulumi.export("group", cluster.cluster_security_group_id)
pulumi.export("queue", queue.name)
pulumi.export("token", config.get_secret("token"))
"""
RULES = """
# a policy pack by the bare protocol, so that only the language host is under test
from concurrent import futures
import grpc
from pulumi.runtime.proto import analyzer_pb2 as pb, analyzer_pb2_grpc, plugin_pb2

class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    def Handshake(self, request, context): return pb.AnalyzerHandshakeResponse()
    def ConfigureStack(self, request, context): return pb.AnalyzerStackConfigureResponse()
    def GetPluginInfo(self, request, context): return plugin_pb2.PluginInfo(version="0.1.0")
    def AnalyzeStack(self, request, context): return pb.AnalyzeResponse()
    def Remediate(self, request, context): return pb.RemediateResponse()
    def GetAnalyzerInfo(self, request, context):
        rule = pb.PolicyInfo(name="short", enforcementLevel=pb.MANDATORY, policy_type=pb.POLICY_TYPE_RESOURCE)
        return pb.AnalyzerInfo(name="demo", version="0.1.0", policies=[rule])
    def Analyze(self, request, context):
        if request.type != "aws:sqs/queue:Queue" or request.properties["messageRetentionSeconds"] <= 600:
            return pb.AnalyzeResponse()
        return pb.AnalyzeResponse(diagnostics=[pb.AnalyzeDiagnostic(
            policyName="short", policyPackName="demo", policyPackVersion="0.1.0", enforcementLevel=pb.MANDATORY,
            message="messages are kept too long", urn=request.urn)])

server = grpc.server(futures.ThreadPoolExecutor(4))
analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Pack(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    made = Simulation(tmp_path_factory.mktemp("aws"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


@pytest.fixture
def cli(simulation: Simulation, tmp_path: Path) -> Iterator[Cli]:
    project = tmp_path / "project"
    (project / "program").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: demo\nruntime: python\nmain: program\n")
    (project / "program" / "__main__.py").write_text(PROGRAM)
    made = Cli(project, environment(tmp_path, simulation))
    made("stack", "init", "test")
    yield made
    made("destroy", "--yes", "--skip-preview")


def up(cli: Cli, *args: str, fails: bool = False) -> str:
    return cli("up", "--yes", "--skip-preview", *args, fails=fails)


def test_preview_up_again_restart_and_destroy(cli: Cli, simulation: Simulation) -> None:
    assert "to create" in cli("preview")
    up(cli)
    outputs = json.loads(cli("stack", "output", "--json"))
    user = outputs["kubeconfig"]["users"][0]["user"]
    assert user["exec"]["command"] == str(PLUGINS / "eks-token")
    assert outputs["group"].startswith("sg-")
    assert "https://127.0.0.1:6443" in json.dumps(outputs["kubeconfig"])
    up(cli, "--expect-no-changes")
    simulation.kill()
    simulation.start()
    cli("preview", "--refresh", "--expect-no-changes")
    cli("config", "set", "retention", "600")
    shown = cli("preview", "--diff")
    assert "messageRetentionSeconds: 300 => 600" in shown
    assert "replace" not in shown
    up(cli)
    cli("destroy", "--yes", "--skip-preview")
    assert cli.state() == []


def test_a_wrong_role_is_named_and_the_next_up_goes_on(cli: Cli) -> None:
    wrong = "arn:aws:iam::123456789012:role/nobody"
    cli("config", "set", "principal", wrong)
    out = up(cli, fails=True)
    assert f"principalArn: role {wrong} does not exist" in out
    assert "aws:eks/accessEntry:AccessEntry 'nodes'" in out
    cli("config", "rm", "principal")
    up(cli)
    up(cli, "--expect-no-changes")


def test_whoever_makes_a_cluster_is_its_admin_only_by_name(cli: Cli) -> None:
    """As pulumi-eks and EKS do it, the creator has an entry already: declaring it fails, until it isn't made."""
    caller = "arn:aws:iam::123456789012:user/moto"
    for key, value in {"principal": caller, "type": "STANDARD", "hiddenAdmin": "true"}.items():
        cli("config", "set", key, value)
    out = up(cli, fails=True)
    assert "ResourceInUseException" in out
    assert f"already in use: {caller}" in out
    cli("config", "rm", "hiddenAdmin")
    assert "ResourceInUseException" in up(cli, fails=True), "a cluster that is there keeps what it was made with"
    cli("destroy", "--yes", "--skip-preview")
    up(cli)
    cluster = next(found for found in cli.state() if found["type"] == "aws:eks/cluster:Cluster")
    assert cluster["inputs"]["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is False
    up(cli, "--expect-no-changes")


def test_a_secret_stays_one(cli: Cli) -> None:
    cli("config", "set", "--secret", "token", "sesame")
    up(cli)
    assert "sesame" not in cli("stack", "output")
    assert "sesame" not in json.dumps(cli.state())
    assert json.loads(cli("stack", "output", "--json", "--show-secrets"))["token"] == "sesame"


def test_a_failing_program_shows_its_own_lines(cli: Cli) -> None:
    (cli.project / "program" / "__main__.py").write_text("import helper\nhelper.work()\n")
    (cli.project / "program" / "helper.py").write_text('def work():\n    raise KeyError("what is wrong")\n')
    out = cli("preview", fails=True)
    assert "what is wrong" in out
    assert "helper.py" in out
    assert "run_in_stack" not in out


def test_an_argument_that_is_not_handled_is_an_error_at_preview(cli: Cli) -> None:
    program = cli.project / "program" / "__main__.py"
    program.write_text(PROGRAM.replace("enable_dns_hostnames=True", 'ipv4_ipam_pool_id="pool"'))
    out = cli("preview", fails=True)
    assert "ipv4IpamPoolId isn't handled by the simulated aws:ec2/vpc:Vpc" in out
    program.write_text(PROGRAM.replace("skip_default_node_group=True", "skip_default_node_group=False"))
    assert "skipDefaultNodeGroup=False: the simulated eks.Cluster only has True" in cli("preview", fails=True)
    program.write_text(PROGRAM)


def test_policy_packs_run(cli: Cli, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("name: demo\nversion: 0.1.0\nruntime: python\n")
    (pack / "__main__.py").write_text(RULES)
    cli("preview", "--policy-pack", str(pack))
    cli("config", "set", "retention", "900")
    assert "messages are kept too long" in cli("preview", "--policy-pack", str(pack), fails=True)
    assert plugins(cli) == {}


def plugins(cli: Cli) -> dict[int, str]:
    """Processes that run with this project's environment, with their command lines."""
    home = f"PULUMI_HOME={cli.env['PULUMI_HOME']}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if home in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("number", "host_too", "wait_s"),
    [(signal.SIGINT, False, 30), (signal.SIGKILL, False, 15), (signal.SIGKILL, True, 15)],
)
def test_no_process_is_left_when_the_engine_is_ended(cli: Cli, number: int, host_too: bool, wait_s: float) -> None:
    program = cli.project / "program" / "__main__.py"
    program.write_text(PROGRAM + "\nimport time\nprint('sleeping', flush=True)\ntime.sleep(600)\n")
    process = cli.start("preview")
    until(lambda: any("program.py" in line for line in plugins(cli).values()), 60)
    time.sleep(3)
    hosts = [pid for pid, line in plugins(cli).items() if "srvmod.local.providers.langhost" in line]
    assert len(hosts) == 1
    process.send_signal(number)
    if host_too:
        os.kill(hosts[0], number)
    try:
        until(lambda: not plugins(cli), wait_s)
    finally:
        process.kill()
        process.wait()
        program.write_text(PROGRAM)
        cli("cancel", "--yes")
