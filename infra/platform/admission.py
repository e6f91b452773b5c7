"""The clauses at the API server's door."""

import pulumi

from srvmod.infra.platform.documents import admission as documents
from srvmod.infra.platform.objects import declare


class Admission(pulumi.ComponentResource):
    """Policies and bindings; what they guard depends on this component, so that nothing is made before them."""

    def __init__(self, name: str, args: documents.Admission, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:Admission", name, None, opts)
        for policy, binding in documents.bound(args):
            own = policy["metadata"]["name"].removeprefix("srvmod-")
            made = declare(f"{name}-{own}", policy, pulumi.ResourceOptions(parent=self))
            declare(f"{name}-{own}-binding", binding, pulumi.ResourceOptions(parent=self, depends_on=[made]))
        self.register_outputs({})
