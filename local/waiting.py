"""What the controllers need before they start; they exit (as they do anywhere) when it isn't there."""

from __future__ import annotations

import time
from collections.abc import Callable

from kubernetes.client import ApiClient, ApiextensionsV1Api
from kubernetes.client.exceptions import ApiException

from srvmod.local.kube import untyped

POLL_SECONDS = 0.5


def until(what: str, probe: Callable[[], bool]) -> None:
    """Poll until `probe` is true; says once what is awaited. The supervisor ends the wait with the process."""
    print(f"waiting for {what}", flush=True)
    while not probe():
        time.sleep(POLL_SECONDS)


def crd_established(client: ApiClient, name: str) -> bool:
    """Whether a CRD is there and served; False also while the API server can't be asked."""
    try:
        crd = untyped(ApiextensionsV1Api(client)).read_custom_resource_definition(name)
    except (ApiException, OSError):
        return False
    return any(c.type == "Established" and c.status == "True" for c in crd.status.conditions or [])
