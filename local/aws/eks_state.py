"""The objects of simulated EKS: clusters and what hangs on them, as the documents that the API gives out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from srvmod.local.aws import determinism
from srvmod.local.aws.context import Context
from srvmod.local.aws.wire import AwsError

Document = dict[str, Any]


@dataclass
class ClusterState:
    """One cluster with its node groups, add-ons, access entries, pod identities and updates, by their API keys."""

    document: Document
    nodegroups: dict[str, Document] = field(default_factory=dict)
    addons: dict[str, Document] = field(default_factory=dict)
    entries: dict[str, Document] = field(default_factory=dict)
    policies: dict[str, dict[str, Document]] = field(default_factory=dict)
    identities: dict[str, Document] = field(default_factory=dict)
    updates: dict[str, Document] = field(default_factory=dict)


def clusters(context: Context) -> dict[str, ClusterState]:
    """The clusters of the call's region by name."""
    return context.world.clusters.setdefault(context.region, {})


def cluster(context: Context, name: str) -> ClusterState:
    """The cluster called ``name``, or ResourceNotFoundException."""
    found = clusters(context).get(name)
    if found is None:
        raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    return found


def item(context: Context, params: Mapping[str, Any], kind: str, key: str, label: str) -> Document:
    """One document of a cluster's collection ``kind`` by the request's ``key``, or ResourceNotFoundException."""
    found: Document | None = getattr(cluster(context, params["clusterName"]), kind).get(params[key])
    if found is None:
        raise AwsError("ResourceNotFoundException", f"No {label} found for {key} {params[key]!r}.", 404)
    return found


def arn(context: Context, kind: str, *path: str) -> str:
    """An EKS ARN of this account and region."""
    return f"arn:aws:eks:{context.region}:{context.account}:{kind}/{'/'.join(path)}"


def record_update(state: ClusterState, kind: str, given: Mapping[str, Any]) -> Document:
    """Note a finished update and give the answer of the Update* calls."""
    identifier = determinism.new_id(32)
    update = {
        "id": identifier,
        "status": "Successful",
        "type": kind,
        "params": [{"type": kind_of(k), "value": str(v)} for k, v in given.items() if kind_of(k)],
        "createdAt": determinism.now(),
        "errors": [],
    }
    state.updates[identifier] = update
    return {"update": update}


def kind_of(argument: str) -> str | None:
    """The UpdateParamType of an argument, where the API has one."""
    return {"version": "Version", "logging": "ClusterLogging", "releaseVersion": "ReleaseVersion"}.get(argument)


def tagged(context: Context, resource: str) -> Document:
    """The document with ARN ``resource`` (cluster, node group, add-on, entry, association)."""
    for state in clusters(context).values():
        if state.document["arn"] == resource:
            return state.document
        for collection in (state.nodegroups, state.addons, state.entries, state.identities):
            for document in collection.values():
                if resource in {
                    document.get(key) for key in ("nodegroupArn", "addonArn", "accessEntryArn", "associationArn")
                }:
                    return document
    raise AwsError("NotFoundException", f"No resource found with ARN {resource}", 404)
