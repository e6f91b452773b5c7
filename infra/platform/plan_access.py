"""Rights of the roles that preview and look for drift."""

from collections.abc import Sequence

import pulumi

from srvmod.infra.labels import PLAN_GROUP
from srvmod.infra.platform.documents import plan_access as documents
from srvmod.infra.platform.objects import declare


class PlanAccess(pulumi.ComponentResource):
    """What the Kubernetes group PLAN_GROUP may read: what is declared, and the Secrets of `namespaces`, which must
    exist."""

    def __init__(self, name: str, namespaces: Sequence[str], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:PlanAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare(f"{name}-reads", documents.cluster_role(), child)
        declare(f"{name}-binding", documents.cluster_role_binding(), child)
        for namespace in namespaces:
            declare(f"{name}-secrets-{namespace}", documents.secrets_role(namespace), child)
            declare(f"{name}-secrets-binding-{namespace}", documents.secrets_role_binding(namespace), child)
        self.register_outputs({"group": PLAN_GROUP})
