"""Starts Envoy Gateway's controller as a process: its certificates are where the controller looks for them (/certs).

Runs inside the stack's own root file system, so /certs never appears on the machine.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

from kubernetes.client import ApiClient, CoreV1Api
from kubernetes.client.exceptions import ApiException

from srvmod.local.kube import api_client, untyped
from srvmod.local.waiting import crd_established, until

CERTS = Path("/certs")


def write_certificates(client: ApiClient, namespace: str, binary: str) -> None:
    """Let the controller's own certgen make its Secrets (once), then lay its files under /certs."""
    core = untyped(CoreV1Api(client))
    try:
        core.create_namespace({"metadata": {"name": namespace}})
    except ApiException as error:
        if error.status != 409:
            raise
    names = {secret.metadata.name for secret in core.list_namespaced_secret(namespace).items}
    if "envoy-gateway" not in names:
        subprocess.run([binary, "certgen", "--disable-topology-injector"], check=True)
    secret = core.read_namespaced_secret("envoy-gateway", namespace)
    CERTS.mkdir(exist_ok=True)
    for name, value in secret.data.items():
        (CERTS / name).write_bytes(base64.b64decode(value))


def main() -> None:
    binary, config = sys.argv[1:]
    client = api_client(Path(os.environ["KUBECONFIG"]))
    for crd in ("referencegrants.gateway.networking.k8s.io", "envoyproxies.gateway.envoyproxy.io"):
        until(f"CRD {crd}", lambda crd=crd: crd_established(client, crd))
    write_certificates(client, os.environ["ENVOY_GATEWAY_NAMESPACE"], binary)
    os.execv(binary, [binary, "server", "--config-path", config])


if __name__ == "__main__":
    main()
