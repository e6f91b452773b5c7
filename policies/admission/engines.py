"""The clauses on one engine: what it must be to be read, its GPUs, and its island."""

from __future__ import annotations

from srvmod.contract import P5_48XLARGE, TENSOR_PARALLEL_SIZE, Clause
from srvmod.policies.admission.policy import Validation, list_of, map_of, text, texts
from srvmod.policies.admission.words import ASSIGNMENT, FLAG, hidden, words
from srvmod.policies.facts import NVIDIA_GPU
from srvmod.policies.rules import Topic, batching, hardware, islands

HW, INV_1, INV_3 = Clause.MC_HW_01, Clause.INV_SRVMOD_01, Clause.INV_SRVMOD_03
TP = TENSOR_PARALLEL_SIZE.value
PLAIN = "write the command as a list: program, then --flag=value, with values instead of variables and scripts"
GPU = text(NVIDIA_GPU)
ZERO = r"^\\s*[+-]?0{1,9}\\s*$"
ISLANDS = [texts([str(gpu) for gpu in island.gpus]) for island in P5_48XLARGE.islands]


def engine(  # noqa: PLR0917 - a row of a table
    clause: Clause | Topic, rule: str, expression: str, what: str, fix: str, found: str = ""
) -> Validation:
    """A validation of engines that can be read; what isn't one, or can't be read, is another validation's."""
    return Validation(clause, rule, f"!variables.judged || ({expression})", what, fix, found)


def absent_or(name: str, condition: str) -> str:
    """An option that may be left out; `x` in the condition is its value."""
    return f"variables.{name} == '' || ({condition.replace('$x', f'variables.{name}')})"


def reading() -> list[Validation]:
    """What an engine must be for the others to see it."""
    shown = "variables.containers.all(c, !(" + hidden("c") + "))"
    before = "variables.words.slice(0, variables.start)"
    return [
        Validation(INV_1, "readable-engine", shown, "what a container runs is said in a script or a ConfigMap", PLAIN),
        Validation(
            HW, "one-engine", "variables.engines.size() <= 1", "several containers are engines", "one engine per pod"
        ),
        Validation(
            INV_1,
            "readable-engine",
            "!variables.one || variables.readable || variables.otherEngine",
            "the engine's command can't be read here",
            PLAIN,
        ),
        Validation(
            INV_1,
            "allowed-engine",
            "!variables.otherEngine",
            "other software than vLLM serves a model",
            "vllm serve, which batches per iteration",
        ),
        Validation(
            INV_1,
            "readable-engine",
            f"!variables.readable || !{before}.exists(w, w.matches({text(ASSIGNMENT)}))",
            "the command sets variables",
            "the container's env",
        ),
        Validation(
            INV_1,
            "readable-engine",
            "!variables.readable || !('--config' in variables.given.map(g, g.name))",
            "options come from a file",
            PLAIN,
        ),
        Validation(
            INV_1,
            "simulated-engine",
            "!variables.simulated || (batching in variables.labels && variables.labels[batching] == "
            "'simulated')".replace("batching", text(batching.LABEL)),
            "the simulated engine doesn't say what it is",
            f"the pod label {batching.LABEL}: simulated",
        ),
    ]


def hardware_clauses() -> list[Validation]:
    """MC-HW-01."""
    four = f"quantity(string(variables.engine.resources.$p[{GPU}])).compareTo(quantity('{TP}')) == 0"
    limit, request = four.replace("$p", "limits"), four.replace("$p", "requests")
    amounts = (
        f"has(variables.engine.resources) && has(variables.engine.resources.limits) && {GPU} in "
        f"variables.engine.resources.limits && {limit} && (!has(variables.engine.resources.requests) || "
        f"!({GPU} in variables.engine.resources.requests) || {request})"
    )
    parts = "variables.engines.all(c, !has(c.resources) || [" + (
        f"{map_of('c.resources', 'requests')}, {map_of('c.resources', 'limits')}].all(r, "
        f"r.all(k, !k.startsWith('nvidia.com/') || k == {GPU})))"
    )
    instance = text(P5_48XLARGE.name)
    keys = texts(sorted(hardware.INSTANCE_KEYS))
    selector = map_of("variables.spec", "nodeSelector")
    products = " && ".join(
        f"(k != {text(key)} || $v.lowerAscii().contains({text(value.lower())}))"
        for key, value in hardware.PRODUCT_KEYS.items()
    )
    by_label = f"{selector}.all(k, (!(k in {keys}) || {selector}[k] == {instance}) && " + (
        products.replace("$v", f"{selector}[k]") + ")"
    )
    terms = (
        "variables.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution"
        ".?nodeSelectorTerms.orValue([])"
    )
    by_term = (
        f"{terms}.all(t, {list_of('t', 'matchExpressions')}.all(e, e.operator != 'In' || e.values.all(v, "
        f"(!(e.key in {keys}) || v == {instance}) && {products.replace('(k ', '(e.key ').replace('$v', 'v')})))"
    )
    sizes = [
        engine(
            HW,
            "one-engine",
            absent_or(name, "$x == '1'"),
            f"{flag} isn't 1",
            f"leave --{flag} out",
            f"variables.{name}",
        )
        for name, flag in (
            ("pipelineParallel", "pipeline-parallel-size"),
            ("dataParallel", "data-parallel-size"),
            ("prefillParallel", "prefill-context-parallel-size"),
        )
    ]
    return [
        engine(
            HW,
            "tensor-parallel",
            f"variables.tensorParallel == '{TP}'",
            f"tensor_parallel_size isn't {TP}",
            f"--tensor-parallel-size={TP}",
            "variables.tensorParallel",
        ),
        engine(HW, "gpus", amounts, f"GPUs aren't {TP}", f"resources.requests and limits: {NVIDIA_GPU}: {TP}"),
        Validation(HW, "gpus", parts, "asks for a part of a GPU", f"{NVIDIA_GPU}: {TP}"),
        engine(
            HW, "gpus", f"variables.podGpus == {TP}", "a container beside the engine has GPUs", "none beside the engine"
        ),
        *sizes,
        engine(
            HW,
            "instance-type",
            f"{by_label} && {by_term}",
            "another instance type or GPU is selected",
            f"node.kubernetes.io/instance-type: {P5_48XLARGE.name}",
        ),
    ]


def island_clauses() -> list[Validation]:
    """INV-SRVMOD-03."""
    found = [
        engine(
            INV_3,
            "one-node",
            absent_or("nodes", "$x == '1'"),
            "nnodes isn't 1",
            "leave --nnodes out",
            "variables.nodes",
        ),
        engine(
            INV_3,
            "one-node",
            absent_or("backend", "$x == 'mp'"),
            "workers may be on other nodes",
            "--distributed-executor-backend=mp",
            "variables.backend",
        ),
    ]
    for name, flag in (("dataAddress", "data-parallel-address"), ("masterAddress", "master-addr")):
        here = absent_or(name, "$x in ['127.0.0.1', 'localhost']")
        found.append(
            engine(INV_3, "one-node", here, f"{flag} is elsewhere", f"leave --{flag} out", f"variables.{name}")
        )
    conditions = {
        "NCCL_P2P_DISABLE": f"e.value.matches('{ZERO}')",
        "NCCL_P2P_LEVEL": "!(e.value.lowerAscii() in ['loc', '0'])",
        "NCCL_NVLS_ENABLE": f"!e.value.matches('{ZERO}')",
        "CUDA_DISABLE_P2P": f"e.value.matches('{ZERO}')",
    }
    assert conditions.keys() == islands.OFF_WHEN.keys()
    for name, condition in conditions.items():
        on = f"variables.env.all(e, e.name != '{name}' || (has(e.value) && !e.value.contains('$') && ({condition})))"
        found.append(engine(INV_3, "nvlink", on, f"{name} takes NVLink away, or can't be read", f"leave {name} out"))
    found.append(
        engine(
            INV_3,
            "nvlink",
            f"!{list_of('variables.engine', 'envFrom')}.exists(e, has(e.configMapRef))",
            "variables come from a ConfigMap that isn't seen here",
            "write them under env",
        )
    )
    for name, value in (("CUDA_VISIBLE_DEVICES", "e.value"), ("NVIDIA_VISIBLE_DEVICES", "e.value")):
        empty = "e.value == '' || " if name.startswith("NVIDIA") else ""
        own = f"variables.env.all(e, e.name != '{name}' || (has(e.value) && ({empty}{_island(value)})))"
        found.append(engine(INV_3, "visible-devices", own, f"{name} isn't one island", f"leave {name} out"))
    ids = absent_or("deviceIds", _island("$x"))
    found.append(engine(INV_3, "visible-devices", ids, "--device-ids isn't one island", "leave --device-ids out"))
    pool = f"variables.podGpus in [0, {TP}]"
    plugin = (
        f"variables.containers.all(c, !c.image.contains('device-plugin') || ({list_of('c', 'env')}.all(e, "
        "e.name != "
        "'MIG_STRATEGY' || (has(e.value) && e.value in ['', 'none'])) && !"
        f"{words('c')}.exists(w, w.startsWith('--mig-strategy') && w != '--mig-strategy=none')))"
    )
    found.append(Validation(INV_3, "gpu-sharing", plugin, "the device plugin divides GPUs", "MIG_STRATEGY: none"))
    found.append(
        Validation(
            INV_3,
            "pool-pods",
            pool,
            f"a pod with another number of GPUs than {TP} fragments the islands",
            f"{TP} GPUs",
            "string(variables.podGpus)",
        )
    )
    return found


def _island(value: str) -> str:
    parts = f"{value}.split(',').map(p, p.trim())"
    same = " || ".join(f"{parts}.all(p, p in {island})" for island in ISLANDS)
    return f"{parts}.size() == {TP} && {parts}.all(p, {parts}.exists_one(q, q == p)) && ({same})"


def more_variables() -> dict[str, str]:
    """Variables that validations here need beside the words'."""
    amount = (
        "(has(c.resources) ? (has(c.resources.limits) && $g in c.resources.limits ? "
        "quantity(string(c.resources.limits[$g])).asInteger() : "
        "has(c.resources.requests) && $g in c.resources.requests ? "
        "quantity(string(c.resources.requests[$g])).asInteger() : 0) : 0)"
    ).replace("$g", GPU)
    containers = f"(variables.spec.containers + {list_of('variables.spec', 'initContainers')})"
    return {
        "podGpus": f"{containers}.map(c, {amount}).sum()",
        "simulated": "variables.words.exists(w, w.matches('^(.*/)?(srvmod_engine|srvmod-engine)$'))",
        "otherEngine": "variables.one && !variables.readable && !variables.imageEntry && "
        "variables.starts.size() == 0 && "
        "!variables.words.exists(w, w.matches('\\\\s') || w.contains('$')) && !variables.words.exists(w, "
        "w.matches('vllm')) && "
        f"!variables.words.exists(w, w.matches({text(FLAG)}) && w.contains('tensor-parallel-size'))",
    }
