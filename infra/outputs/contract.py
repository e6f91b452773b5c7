"""The stack's outputs: names, types and meanings. Nothing here is secret.

Removing a field or changing its type needs a higher CONTRACT_VERSION; adding one doesn't. docs/outputs.md says how to
read them, examples/consumer does it. A field that may be None is absent in a StackReference.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

CONTRACT_VERSION = 1


class Output(BaseModel):
    """A group of outputs; exported with camelCase names."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


class Endpoint(Output):
    """Where requests go."""

    hostname: str | None
    """DNS name that the gateway answers to; None means any. The load balancer's own name is in `gateway`."""
    scheme: str
    """`http` or `https`."""
    port: int
    """Port of the gateway's listener."""
    path: str
    """OpenAI-compatible API below this path."""
    gateway: str
    """`namespace/name` of the Gateway object, whose status holds the address."""


class Model(Output):
    """What answers."""

    id: str
    """Model on the Hugging Face hub."""
    served_name: str
    """What requests put into `model`."""
    revision: str
    """Revision of the weights."""


class Slo(Output):
    """What is promised at the declared traffic."""

    itl_p95_ms: float
    """95th percentile of inter-token latency, ms."""
    ttft_ms: float
    """Time to first token, ms."""


class Auth(Output):
    """How to authenticate."""

    scheme: str
    """`bearer`: header `Authorization: Bearer KEY`."""
    keys_in: str
    """Name of the secret in AWS Secrets Manager with one key per client, where they are rotated."""
    secret: str
    """`namespace/name` of the Kubernetes Secret that the gateway reads them from."""
    clients: list[str]
    """Clients that have a key."""
    header: str
    """Request header that carries the key."""
    how_to_get_a_key: str
    """What a team does to become a client, in one sentence."""


class Limits(Output):
    """What a request and a stream may be."""

    max_model_tokens: int
    """Prompt and answer together, tokens."""
    max_stream_seconds: int
    """Longest stream, seconds."""
    max_concurrent_sequences: int
    """Streams that the fewest engines hold at once before requests wait."""
    paths: list[str]
    """Paths that clients may call; any other is answered with 404."""


class Cluster(Output):
    """Where it runs."""

    name: str
    """EKS cluster."""
    account_id: str
    """AWS account."""
    region: str
    """AWS region."""
    namespace: str
    """Namespace of engines, gateway and keys."""
    pool: str
    """Karpenter NodePool of the engines' nodes."""


class Dashboards(Output):
    """Where the numbers are watched. Grafana is the company's own; this stack brings Prometheus."""

    kind: str
    """`operator`, `amazon` or `existing`: whose Prometheus evaluates the alert rules and answers the scaler."""
    prometheus: str | None
    """`namespace/service` of the Prometheus that this stack installs; None where one exists already. With `amazon` it
    collects for a workspace, which keeps everything."""
    alertmanager: str | None
    """`namespace/service` of its Alertmanager; None where one exists already, and with `amazon`."""
    alerts_to: str | None
    """SNS topic or Alertmanager's receiver that alerts go to; None where nobody is named."""
    metrics_namespace: str
    """The only namespace, beside the gateway's, from which engines can be scraped."""


class Weights(Output):
    """Where to upload weights."""

    bucket: str
    """S3 bucket."""
    prefix: str
    """Key prefix of this revision; its manifest.json lies directly below."""


class PlanVerdict(Output):
    """What the planner says about the declared traffic."""

    engines_needed: int
    """Fewest engines that hold the targets."""
    min_engines: int
    """Engines that run at least."""
    max_engines: int
    """Engines that run at most."""
    nodes: int
    """p5 nodes that the fewest engines fill."""
    holds: bool
    """Whether the fewest engines hold the targets at peak traffic."""
    missed: list[str]
    """Targets that they miss."""
    binds: str
    """What keeps an engine from carrying more sessions."""
    sessions_per_engine: int
    """Sessions per engine at peak traffic."""
    itl_p95_ms: float | None
    """Predicted 95th percentile of inter-token latency, ms; None where it has no bound."""
    tokens_per_second: float | None
    """Predicted output tokens per second of the fewest engines."""
    verdict: str
    """The same in a sentence, for people."""
    waiver: str | None
    """Who accepts that the targets are missed, and why; None while they are held or nobody had to be asked."""


class Arns(Output):
    """Identifiers that AWS gives; known after the first `up`."""

    cluster: str
    """EKS cluster."""
    node_role: str
    """Role of the nodes that Karpenter launches."""
    controller_role: str
    """Role of Karpenter's controller."""
    interruption_queue: str
    """Queue of interruption notices."""
    weights_bucket: str
    """Bucket of the weights."""
    weights_key: str
    """KMS key of the weights: who uploads needs `kms:GenerateDataKey` and `kms:Decrypt` on it."""
    weights_reader_role: str
    """Role of the weight cache."""
    api_keys: str
    """Secret with the clients' API keys, as IAM policies write it: AWS adds six characters of its own at the end, for
    which `??????` stands. Who rotates keys needs `secretsmanager:PutSecretValue` on it."""


class Outputs(Output):
    """All outputs but `arns` (see Arns); every field is exported under its camelCase name."""

    contract_version: int = CONTRACT_VERSION
    """Version of this contract."""
    endpoint: Endpoint
    model: Model
    slo: Slo
    auth: Auth
    limits: Limits
    cluster: Cluster
    dashboards: Dashboards
    weights: Weights
    plan: PlanVerdict
    engine_kind: str
    """`vllm`, or `simulated` where no GPU computes anything."""

    def exported(self) -> dict[str, Any]:
        """As plain values by exported name."""
        return self.model_dump(mode="json", by_alias=True)
