"""Whether the Kubernetes API can be reached from here."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, cant_tell, ok

HTTPS = 443
TIMEOUT_SECONDS = 5


def reachable(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """A deployment speaks to the API from where it runs; only a cluster that is there can be tried."""
    kind = "public" if needs.cluster.public_endpoint else "private"
    subject, needed = "Kubernetes API", f"the {kind} endpoint, reached from where `pulumi up` runs"
    where = (
        "run `pulumi up` in the VPC (a runner there, or a tunnel), from a network that "
        "srvmod:cluster.endpointPrivateAccessCidrs names"
    )
    if needs.cluster.public_endpoint:
        where = "add this network to srvmod:cluster.endpointPublicAccessCidrs"
    try:
        cluster = aws.ask("eks", "describe_cluster", name=needs.cluster.name)["cluster"]
    except RefusedError as error:
        if error.code != "ResourceNotFoundException":
            raise
        yield cant_tell(subject, f"no cluster {needs.cluster.name} yet", needed, where)
        return
    url = urlsplit(str(cluster.get("endpoint") or ""))
    if not url.hostname:
        yield cant_tell(subject, f"the cluster is {cluster['status']} and has no endpoint", needed, "ask again later")
        return
    try:
        socket.create_connection((url.hostname, url.port or HTTPS), TIMEOUT_SECONDS).close()
    except OSError as error:
        yield cant_tell(subject, f"{url.hostname} can't be reached from here ({error})", needed, where)
    else:
        yield ok(subject, f"{url.hostname} takes connections", needed)
