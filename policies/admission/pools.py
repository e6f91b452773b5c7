"""Pools of engines and their node classes: they belong to no namespace."""

from __future__ import annotations

from srvmod.contract import P5_48XLARGE, Clause
from srvmod.policies.admission.policy import Policy, Resource, Validation, list_of, text, texts
from srvmod.policies.admission.surroundings import INV_3, KIND, SPEC_CHANGED
from srvmod.policies.rules import hardware

CLASS = "'^p5'"
"""How node classes of engines' pools are named: a pool's object shows only the name, a class's only itself."""


def pools() -> Policy:
    """INV-SRVMOD-03 and MC-HW-01 on pools of engines and their node classes, which belong to no namespace."""
    spec = "object.spec.template.spec"
    labels = "object.spec.template.?metadata.?labels.orValue({})"
    keys = texts(sorted(hardware.INSTANCE_KEYS))
    instance = text(P5_48XLARGE.name)
    ours = (
        f"{KIND} == 'NodePool' && (object.spec.?template.?metadata.?labels.orValue({{}}).exists(k, "
        "k.startsWith('srvmod.dev/'))"
        f" || {list_of(spec, 'taints')}.exists(t, t.key.startsWith('srvmod.dev/')) || "
        f"{list_of(spec, 'requirements')}.exists(r, r.?values.orValue([]).exists(v, v.startsWith('p5') || "
        "v.lowerAscii() == 'h100')))"
    )
    data = "object.spec.?userData.orValue('')"
    named = (
        "object.metadata.?labels.orValue({}).exists(k, k == 'app.kubernetes.io/part-of' && "
        "object.metadata.labels[k] == 'srvmod')"
    )
    classes = (
        f"{KIND} == 'EC2NodeClass' && ({named} || object.metadata.name.matches({CLASS}) || "
        f"{data}.matches('(?i)topology-?manager') || "
        "object.spec.?kubelet.?topologyManagerPolicy.hasValue())"
    )
    canonical = (
        r"'^apiVersion: node\\.eks\\.aws/v1alpha1\\nkind: NodeConfig\\nspec:\\n  kubelet:\\n    config:\\n"
        r"(      +[A-Za-z0-9_.-]+:.*\\n)*      topologyManagerPolicy: single-numa-node(\\n|$)'"
    )
    topology = (
        "object.spec.?kubelet.?topologyManagerPolicy.hasValue() ? "
        "object.spec.kubelet.topologyManagerPolicy == 'single-numa-node' : "
        f"({data}.matches({canonical}) && {data}.findAll('topology-?[mM]anager-?[pP]olicy[^a-zA-Z]').size() == 1)"
    )
    product = " && ".join(
        f"(r.key != {text(key)} || r.operator != 'In' || r.?values.orValue([]).all(v, "
        f"v.lowerAscii().contains({text(value.lower())})))"
        for key, value in hardware.PRODUCT_KEYS.items()
    )
    mig = ["nvidia.com/mig.config", "nvidia.com/mig.strategy"]
    return Policy(
        "pools",
        "Pools of engines are p5.48xlarge behind a taint, and their kubelets keep four GPUs on one NUMA node.",
        (
            Resource("karpenter.sh", "*", ("nodepools",)),
            Resource("karpenter.k8s.aws", "*", ("ec2nodeclasses",)),
        ),
        {"pool": ours, "class": classes},
        [
            Validation(
                INV_3,
                "pool-pods",
                f"!variables.pool || {list_of(spec, 'taints')}.exists(t, t.effect in ['NoSchedule', 'NoExecute'])",
                "the pool has no taint: any GPU pod may land on it",
                "a NoSchedule taint",
            ),
            Validation(
                Clause.MC_HW_01,
                "instance-type",
                f"!variables.pool || ({list_of(spec, 'requirements')}.exists(r, r.key in "
                f"{keys} && r.operator == 'In' && r.values == [{instance}]) && {list_of(spec, 'requirements')}.all(r, "
                f"(!(r.key in {keys}) || r.operator != 'In' || r.values == [{instance}]) && {product}))",
                "the pool's instance type isn't one kind",
                f"node.kubernetes.io/instance-type: {P5_48XLARGE.name}",
            ),
            Validation(
                INV_3,
                "gpu-sharing",
                f"!variables.pool || {labels}.all(k, !(k in {texts(mig)}) || "
                f"{labels}[k] in ['', 'none', 'all-disabled'])",
                "a label divides or shares GPUs",
                "no mig label",
            ),
            Validation(
                INV_3,
                "topology-manager",
                f"!variables.pool || {spec}.?nodeClassRef.?name.orValue('').matches({CLASS})",
                "nothing shows here that the pool's node class is judged: its name doesn't say p5",
                "a nodeClassRef whose name begins with p5",
            ),
            Validation(
                INV_3,
                "topology-manager",
                f"!variables.class || ({topology})",
                "the kubelet isn't single-numa-node, or its user data can't be read here",
                "spec.kubelet.topologyManagerPolicy, or user data that begins as a plain "
                "NodeConfig with spec.kubelet.config.topologyManagerPolicy: single-numa-node",
            ),
        ],
        SPEC_CHANGED,
        scope="cluster",
    )
