"""The weight cache on nodes that kwok pretends: the real agent, as a process with a folder of its own.

So the startup taint is lifted on a pretended node as on a real one: after the weights were fetched and verified.
Its settings are those of the DaemonSet's pod; it finds its models folder and its service account where the pod
would have them.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from srvmod.local.api import Api, ApiError
from srvmod.local.nodes.process import Daemon
from srvmod.local.paths import REPO, State

log = logging.getLogger(__name__)

NAMESPACE = "serving"
NAME = "weight-cache"
DEFAULT_TAINT = "srvmod.dev/weights-cold"
TOKEN_SECONDS = 24 * 3600
AT_ONCE = 2  # agents that fetch at the same time; each pretended node has a network of its own, this machine one
STAYING = 16  # warm nodes whose agent stays, as a DaemonSet's pod does; 40 MB each


class PretendedNodes:
    """Runs an agent for every pretended node that still has its startup taint, and for the first STAYING others."""

    def __init__(self, api: Api, state: State, authority: Path) -> None:
        self.api, self.state, self.authority = api, state, authority
        self._names: set[str] = set()
        folder = self._root
        if folder.exists():
            self._names = {path.name for path in folder.iterdir()}

    @property
    def _root(self) -> Path:
        return self.state.live / "nodes" / "pretended"

    def agent(self, node: str) -> Daemon:
        return Daemon(
            name=f"{NAME}-{node}",
            command=[sys.executable, "-m", "weight_cache"],
            run=self.state.run,
            log=self.state.logs / f"{NAME}-{node}.log",
            enter=[sys.executable, "-m", "srvmod.local.nodes.agent_mounts", str(self._root / node)],
        )

    def reconcile(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Starts agents that are needed and stops those whose node is gone. Errors are logged and retried."""
        present = {node["metadata"]["name"] for node in nodes if "deletionTimestamp" not in node["metadata"]}
        cold = {node["metadata"]["name"] for node in nodes if _is_cold(node)} & present
        for name in self._names - present:
            self.agent(name).stop()
            shutil.rmtree(self._root / name, ignore_errors=True)
        self._names &= present
        if not cold and not self._names:
            return
        try:
            self._keep_agents(cold)
        except (ApiError, OSError) as error:
            log.warning("weight cache of pretended nodes: %s", error)

    def _keep_agents(self, cold: set[str]) -> None:
        pods = self._pods()
        for name in self._names:
            if self._runs(name) and self._bound_to(name) != pods.get(name, {}).get("uid"):
                # As with a real pod: what the pod was given ends with the pod.
                self.agent(name).stop()
        warm = sorted(self._names - cold)
        for name in warm[STAYING:]:
            self.agent(name).stop()
        fetching = {name for name in cold & self._names if self._runs(name)}
        waiting = sorted(cold - fetching)[: max(0, AT_ONCE - len(fetching))]
        for name in waiting + [name for name in warm[:STAYING] if not self._runs(name)]:
            if name in pods:
                self._start(name, pods[name])
        self._renew_tokens(pods)

    def _runs(self, node: str) -> bool:
        return self.agent(node).pid() is not None

    def _start(self, node: str, placed: dict[str, str]) -> None:
        """Starts the agent of the DaemonSet's pod `placed`."""
        folder = self._root / node
        for path in (folder / "models", folder / "serviceaccount"):
            path.mkdir(parents=True, exist_ok=True)
        pod = self._template()
        self._write_token(node, pod, placed)
        (folder / "serviceaccount" / "namespace").write_text(NAMESPACE)
        (folder / "pod").write_text(placed["uid"])
        shutil.copyfile(self.authority, folder / "serviceaccount" / "ca.crt")
        env = {
            **environment(pod, node),
            **_api_address(self.api.server),
            # all agents share one network here, on nodes they don't
            "HOST": "127.0.0.1",
            "PORT": "0",
            "PYTHONPATH": str(REPO / "images" / NAME),
        }
        replace(self.agent(node), env=env).start()
        self._names.add(node)
        log.info("Node %s: weight cache started", node)

    def _template(self) -> Mapping[str, Any]:
        daemon_set = self.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{NAME}")
        return daemon_set["spec"]["template"]["spec"]

    def _token(self, node: str) -> Path:
        return self._root / node / "serviceaccount" / "token"

    def _write_token(self, node: str, pod: Mapping[str, Any], placed: dict[str, str]) -> None:
        """Gives the agent a new token, as the kubelet gives a pod; the agent reads it for every call."""
        answer = self.api.post(
            f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{pod.get('serviceAccountName', 'default')}/token",
            {"spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": placed}},
        )
        new = self._token(node).with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(answer["status"]["token"])
        new.replace(self._token(node))

    def _renew_tokens(self, pods: Mapping[str, dict[str, str]]) -> None:
        now = time.time()
        old = [
            name
            for name in sorted(self._names & pods.keys())
            if self._runs(name) and now - self._token(name).stat().st_mtime > TOKEN_SECONDS / 2
        ]
        pod = self._template() if old else {}
        for name in old:
            self._write_token(name, pod, pods[name])

    def _pods(self) -> dict[str, dict[str, str]]:
        """By node the DaemonSet's pod, as a token is bound to it: such a token names pod and node."""
        listed = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fname%3D{NAME}")
        return {
            pod["spec"]["nodeName"]: {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
            for pod in listed["items"]
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        }

    def _bound_to(self, node: str) -> str:
        """The uid of the pod that the node's agent stands for."""
        try:
            return (self._root / node / "pod").read_text()
        except OSError:
            return ""


def environment(pod: Mapping[str, Any], node: str) -> dict[str, str]:
    """The environment of the pod's first container on `node`."""
    found: dict[str, str] = {}
    for entry in pod["containers"][0].get("env") or []:
        if "value" in entry:
            found[entry["name"]] = entry["value"]
        elif entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath") == "spec.nodeName":
            found[entry["name"]] = node
        else:
            log.warning("weight cache: %s comes from %s, which a pretended node can't give", entry["name"], entry)
    return found


def _api_address(server: str) -> dict[str, str]:
    host, _, port = server.removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port or "443"}


def _is_cold(node: Mapping[str, Any]) -> bool:
    taints = node["spec"].get("taints") or []
    return any(taint["key"] == DEFAULT_TAINT for taint in taints)
