"""What Karpenter, Envoy Gateway and the load balancer controller do that Pulumi waits for, and when they did it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from srvmod.infra.platform.pools import NODE_CLASS_CONDITIONS

FINALIZER = "karpenter.k8s.aws/termination"
"""Karpenter's own, on every EC2NodeClass: it goes when no node of the class is left."""
LOOK_SECONDS = 0.3


@dataclass(frozen=True)
class Seen:
    """Something that a controller did, at a wall-clock time in seconds."""

    what: str
    at: float


class Controllers(threading.Thread):
    """Polls the API server. A node class gets its finalizer, an instance and its conditions; a Gateway gets a load
    balancer; both are taken away in the order in which the real controllers do it."""

    def __init__(self, client: ApiClient, aws: Callable[[str], Any]) -> None:
        super().__init__(name="played-controllers", daemon=True)
        self._objects, self._aws = CustomObjectsApi(client), aws
        self._over = threading.Event()
        self._instance = self._load_balancer = ""
        self.seen: list[Seen] = []

    def __enter__(self) -> Controllers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(30)

    def at(self, what: str) -> float:
        """When something was seen; fails when it wasn't."""
        times = [seen.at for seen in self.seen if seen.what == what]
        assert times, f"{what!r} was never seen; seen: {[seen.what for seen in self.seen]}"
        return times[-1]

    def run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self._node_classes()
                self._gateways()
            except ApiException as error:
                if error.status not in {404, 409}:
                    self._note(f"error: {error.status} {error.reason}")

    def _note(self, what: str) -> None:
        self.seen.append(Seen(what, time.time()))

    def _node_classes(self) -> None:
        where = ("karpenter.k8s.aws", "v1", "ec2nodeclasses")
        for found in self._objects.list_cluster_custom_object(*where)["items"]:
            name, meta = found["metadata"]["name"], found["metadata"]
            if "deletionTimestamp" in meta:
                if self._instance:
                    self._aws("ec2").terminate_instances(InstanceIds=[self._instance])
                    self._note("nodes terminated")
                    self._instance = ""
                body = {"metadata": {"finalizers": None}}
                self._objects.patch_cluster_custom_object(*where, name, body)
            elif not meta.get("finalizers"):
                self._instance = self._launch(found)
                self._objects.patch_cluster_custom_object(*where, name, {"metadata": {"finalizers": [FINALIZER]}})
            elif self._lacks_conditions(found):
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                conditions = [
                    {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now,
                     "observedGeneration": meta["generation"]} for kind in NODE_CLASS_CONDITIONS
                ]  # fmt: skip
                self._objects.patch_cluster_custom_object_status(*where, name, {"status": {"conditions": conditions}})

    def _lacks_conditions(self, found: dict[str, Any]) -> bool:
        there = {c["type"]: c for c in found.get("status", {}).get("conditions", [])}
        generation = found["metadata"]["generation"]
        return any(there.get(kind, {}).get("observedGeneration") != generation for kind in NODE_CLASS_CONDITIONS)

    def _launch(self, node_class: dict[str, Any]) -> str:
        """An instance in a subnet that the class selects: AWS refuses to delete the subnet while it runs."""
        ec2 = self._aws("ec2")
        tags = node_class["spec"]["subnetSelectorTerms"][0]["tags"]
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        subnet = ec2.describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"]
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        made = ec2.run_instances(ImageId=image, InstanceType="p5.48xlarge", MinCount=1, MaxCount=1, SubnetId=subnet)
        self._note("node launched")
        return str(made["Instances"][0]["InstanceId"])

    def _gateways(self) -> None:
        where = ("gateway.networking.k8s.io", "v1", "gateways")
        found = self._objects.list_cluster_custom_object(*where)["items"]
        if found and not self._load_balancer:
            subnets = [s["SubnetId"] for s in self._aws("ec2").describe_subnets()["Subnets"]]
            made = self._aws("elbv2").create_load_balancer(Name="gateway", Subnets=subnets[:2], Type="network")
            self._load_balancer = made["LoadBalancers"][0]["LoadBalancerArn"]
            self._note("load balancer made")
        if not found and self._load_balancer:
            self._aws("elbv2").delete_load_balancer(LoadBalancerArn=self._load_balancer)
            self._load_balancer = ""
            self._note("load balancer deleted")
