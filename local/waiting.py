"""What the controllers need before they start; they exit (as they do anywhere) when it isn't there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from srvmod.local.api import Api, ApiError, condition

POLL_SECONDS = 0.5


def until(what: str, probe: Callable[[], bool]) -> None:
    """Poll until `probe` is true; says once what is awaited. The supervisor ends the wait with the process."""
    print(f"waiting for {what}", flush=True)
    while not probe():
        time.sleep(POLL_SECONDS)


def groups_established(api: Api, groups: Sequence[str]) -> bool:
    """Whether every CRD of these API groups is served, and each group has some; False also without an answer."""
    try:
        listed = api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    except ApiError:
        return False
    found = [crd for crd in listed if crd["spec"]["group"] in groups]
    return {crd["spec"]["group"] for crd in found} == set(groups) and all(condition(c, "Established") for c in found)


def crd_established(api: Api, name: str) -> bool:
    """Whether a CRD is there and served; False also while the API server can't be asked."""
    try:
        crd = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    except ApiError:
        return False
    return condition(crd, "Established")
