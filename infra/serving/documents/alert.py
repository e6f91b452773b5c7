"""What an alert rule is, and what all of them speak of."""

from dataclasses import dataclass

from srvmod.contract import ENGINES_PER_NODE
from srvmod.infra.serving.documents.metrics import ITL_TARGET_SECONDS, TTFT_TARGET_SECONDS

PAGE, TICKET, HEARTBEAT = "page", "ticket", "heartbeat"


@dataclass(frozen=True)
class Fleet:
    """What the rules speak of. `least` and `most` are engines; `runbooks` is the address that each alert's page is
    below, None where it is read in the repository; `receiver` becomes a label to route by."""

    least: int
    most: int
    itl_target_seconds: float = ITL_TARGET_SECONDS
    ttft_target_seconds: float = TTFT_TARGET_SECONDS
    runbooks: str | None = None
    receiver: str | None = None
    engines_per_node: int = ENGINES_PER_NODE.value
    heartbeat: bool = False
    """Whether an alert fires always, for those who watch for its silence."""


@dataclass(frozen=True)
class Alert:
    """One rule; it fires when `expression` has held for `minutes`. `runbook` is a page of docs/runbooks."""

    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    description: str
    runbook: str
