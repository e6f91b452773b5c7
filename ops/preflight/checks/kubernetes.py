"""The Kubernetes version and its add-ons."""

from collections.abc import Iterator
from datetime import UTC, datetime

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer, cant_tell, ok, will_fail

STANDARD = "STANDARD_SUPPORT"
SHORT_DAYS = 60


def version(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """EKS has the version, in standard support: the cluster has no extended support and would be upgraded by AWS."""
    wanted = needs.cluster.kubernetes_version
    subject, needed = f"Kubernetes {wanted}", "a version in standard support"
    fix = "set srvmod:cluster.kubernetesVersion to a newer version"
    answer = aws.ask("eks", "describe_cluster_versions", clusterVersions=[wanted], includeAll=True)
    found = answer["clusterVersions"]
    if not found:
        yield will_fail(subject, f"EKS in {needs.region} doesn't have it", needed, fix)
        return
    status = str(found[0].get("versionStatus") or found[0].get("status")).upper()
    end = found[0].get("endOfStandardSupportDate")
    text = status.lower().replace("_", " ") + (f" until {end:%Y-%m-%d}" if end else "")
    if status != STANDARD:
        yield will_fail(subject, text, needed, fix)
    elif end is not None and (end - datetime.now(UTC)).days < SHORT_DAYS:
        yield cant_tell(subject, text, needed, f"less than {SHORT_DAYS} days are left: {fix} soon")
    else:
        yield ok(subject, text, needed)


def addons(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each add-on has the pinned version for this Kubernetes version."""
    for name, wanted in needs.cluster.addons.items():
        there = aws.all(
            "eks",
            "describe_addon_versions",
            "addons",
            addonName=name,
            kubernetesVersion=needs.cluster.kubernetes_version,
        )
        versions = [str(entry["addonVersion"]) for addon in there for entry in addon["addonVersions"]]
        needed = f"{wanted} for Kubernetes {needs.cluster.kubernetes_version}"
        if wanted in versions:
            yield ok(f"add-on {name}", wanted, needed)
        else:
            newest = ", ".join(versions[:3]) or "no version at all"
            yield will_fail(f"add-on {name}", newest, needed, "pin one of these in infra/versions.py")
