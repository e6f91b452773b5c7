"""The clauses on one engine: its pod, its options, its variables."""

from __future__ import annotations

from collections.abc import Sequence

from srvmod.contract import P5_48XLARGE, TENSOR_PARALLEL_SIZE, Clause
from srvmod.policies.admission.policy import Validation, list_of, map_of, text, texts
from srvmod.policies.admission.words import ASSIGNMENT, FLAG, hidden, words
from srvmod.policies.engine_versions import Table
from srvmod.policies.facts import NVIDIA_GPU
from srvmod.policies.rules import Topic, batching, hardware, islands, memory
from srvmod.policies.rules.engine_version import LOAD_FORMATS

HW, KV, CB, SE = Clause.MC_HW_01, Clause.MC_KV_01, Clause.MC_CB_01, Clause.MC_SE_01
INV_1, INV_2, INV_3 = Clause.INV_SRVMOD_01, Clause.INV_SRVMOD_02, Clause.INV_SRVMOD_03
VERSION = Topic.ENGINE_VERSION
TP = TENSOR_PARALLEL_SIZE.value
PLAIN = "write the command as a list: program, then --flag=value, with values instead of variables and scripts"
GPU = text(NVIDIA_GPU)
ZERO = r"^\\s*[+-]?0{1,9}\\s*$"
ISLANDS = [texts([str(gpu) for gpu in island.gpus]) for island in P5_48XLARGE.islands]


def engine(clause: Clause | Topic, rule: str, expression: str, what: str, fix: str, found: str = "") -> Validation:
    """A validation of engines that can be read; what isn't one, or can't be read, is another validation's."""
    return Validation(clause, rule, f"!variables.judged || ({expression})", what, fix, found)


def absent_or(name: str, condition: str) -> str:
    """An option that may be left out; `x` in the condition is its value."""
    return f"variables.{name} == '' || ({condition.replace('$x', f'variables.{name}')})"


def reading() -> list[Validation]:
    """What an engine must be for the others to see it."""
    shown = "variables.spec.containers.all(c, !(" + hidden("c") + "))"
    before = "variables.words.slice(0, variables.start)"
    return [
        Validation(INV_1, "readable-engine", shown, "what a container runs is said in a script or a ConfigMap", PLAIN),
        Validation(HW, "one-engine", "variables.engines.size() <= 1", "several containers are engines", "one engine per pod"),
        Validation(
            INV_1, "readable-engine", "!variables.one || variables.readable || variables.otherEngine",
            "the engine's command can't be read here", PLAIN,
        ),
        Validation(
            INV_1, "allowed-engine", "!variables.otherEngine",
            "other software than vLLM serves a model", "vllm serve, which batches per iteration",
        ),
        Validation(
            INV_1, "readable-engine",
            f"!variables.readable || !{before}.exists(w, w.matches({text(ASSIGNMENT)}))",
            "the command sets variables", "the container's env",
        ),
        Validation(
            INV_1, "readable-engine", "!variables.readable || !('--config' in variables.given.map(g, g.name))",
            "options come from a file", PLAIN,
        ),
        Validation(
            INV_1, "simulated-engine",
            "!variables.simulated || (batching in variables.labels && variables.labels[batching] == 'simulated')".replace(
                "batching", text(batching.LABEL)
            ),
            "the simulated engine doesn't say what it is", f"the pod label {batching.LABEL}: simulated",
        ),
    ]  # fmt: skip


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
        engine(HW, "one-engine", absent_or(name, "$x == '1'"), f"{flag} isn't 1", f"leave --{flag} out", f"variables.{name}")
        for name, flag in (
            ("pipelineParallel", "pipeline-parallel-size"),
            ("dataParallel", "data-parallel-size"),
            ("prefillParallel", "prefill-context-parallel-size"),
        )
    ]
    return [
        engine(
            HW, "tensor-parallel", f"variables.tensorParallel == '{TP}'", f"tensor_parallel_size isn't {TP}",
            f"--tensor-parallel-size={TP}", "variables.tensorParallel",
        ),
        engine(HW, "gpus", amounts, f"GPUs aren't {TP}", f"resources.requests and limits: {NVIDIA_GPU}: {TP}"),
        Validation(HW, "gpus", parts, "asks for a part of a GPU", f"{NVIDIA_GPU}: {TP}"),
        engine(HW, "gpus", f"variables.podGpus == {TP}", "a container beside the engine has GPUs", "none beside the engine"),
        *sizes,
        engine(HW, "instance-type", f"{by_label} && {by_term}", "another instance type or GPU is selected",
               f"node.kubernetes.io/instance-type: {P5_48XLARGE.name}"),
    ]  # fmt: skip


def island_clauses() -> list[Validation]:
    """INV-SRVMOD-03."""
    found = [
        engine(INV_3, "one-node", absent_or("nodes", "$x == '1'"), "nnodes isn't 1", "leave --nnodes out", "variables.nodes"),
        engine(INV_3, "one-node", absent_or("backend", "$x == 'mp'"), "workers may be on other nodes",
               "--distributed-executor-backend=mp", "variables.backend"),
    ]  # fmt: skip
    for name, flag in (("dataAddress", "data-parallel-address"), ("masterAddress", "master-addr")):
        here = absent_or(name, "$x in ['127.0.0.1', 'localhost']")
        found.append(engine(INV_3, "one-node", here, f"{flag} is elsewhere", f"leave --{flag} out", f"variables.{name}"))
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
            INV_3, "nvlink", f"!{list_of('variables.engine', 'envFrom')}.exists(e, has(e.configMapRef))",
            "variables come from a ConfigMap that isn't seen here", "write them under env",
        )
    )  # fmt: skip
    for name, value in (("CUDA_VISIBLE_DEVICES", "e.value"), ("NVIDIA_VISIBLE_DEVICES", "e.value")):
        empty = "e.value == '' || " if name.startswith("NVIDIA") else ""
        own = f"variables.env.all(e, e.name != '{name}' || (has(e.value) && ({empty}{_island(value)})))"
        found.append(engine(INV_3, "visible-devices", own, f"{name} isn't one island", f"leave {name} out"))
    ids = absent_or("deviceIds", _island("$x"))
    found.append(engine(INV_3, "visible-devices", ids, "--device-ids isn't one island", "leave --device-ids out"))
    pool = f"variables.podGpus in [0, {TP}]"
    plugin = (
        f"variables.spec.containers.all(c, !c.image.contains('device-plugin') || ({list_of('c', 'env')}.all(e, e.name != "
        "'MIG_STRATEGY' || (has(e.value) && e.value in ['', 'none'])) && !"
        f"{words('c')}.exists(w, w.startsWith('--mig-strategy') && w != '--mig-strategy=none')))"
    )
    found.append(Validation(INV_3, "gpu-sharing", plugin, "the device plugin divides GPUs", "MIG_STRATEGY: none"))
    found.append(
        Validation(INV_3, "pool-pods", pool, f"a pod with another number of GPUs than {TP} fragments the islands",
                   f"{TP} GPUs", "string(variables.podGpus)")
    )  # fmt: skip
    return found


def _island(value: str) -> str:
    parts = f"{value}.split(',').map(p, p.trim())"
    same = " || ".join(f"{parts}.all(p, p in {island})" for island in ISLANDS)
    return f"{parts}.size() == {TP} && {parts}.all(p, {parts}.exists_one(q, q == p)) && ({same})"


def memory_clauses() -> list[Validation]:
    """MC-KV-01, but for the room of the cache."""
    other = memory.OTHER_FORMATS.pattern
    formats = texts(sorted(memory.FP8_QUANTIZATIONS))
    known = "|".join(name.replace(".", r"\.") for name in _known_models())
    return [
        engine(KV, "kv-block", absent_or("blockSize", "$x == '16'"), "block_size isn't 16", "--block-size=16",
               "variables.blockSize"),
        engine(KV, "kv-dtype", absent_or("kvDtype", f"$x in {texts(list(memory.DTYPES))}"), "kv_cache_dtype is another",
               f"one of {', '.join(memory.DTYPES)}", "variables.kvDtype"),
        engine(KV, "weights", absent_or("quantization", f"$x in {formats}"), "quantization isn't FP8",
               "an FP8 checkpoint, and no --quantization", "variables.quantization"),
        engine(KV, "weights", absent_or("dtype", "!($x in ['float', 'float32'])"), "dtype is float32", "leave --dtype out"),
        engine(KV, "weights", f"!variables.model.matches({text('(?i)' + other)}) || variables.model.matches('(?i)fp8|w8a8')",
               "the model isn't an FP8 checkpoint", "an FP8 checkpoint", "variables.model"),
        engine(KV, "weights", f"!variables.model.matches({text(f'^({known})$')}) || variables.model.matches('(?i)fp8|w8a8')"
               " || variables.quantization != ''", "a bf16 checkpoint that nothing quantises",
               "an FP8 checkpoint, or --quantization=fp8", "variables.model"),
    ]  # fmt: skip


def _known_models() -> Sequence[str]:
    from srvmod.contract import MODELS

    return tuple(MODELS)


def batching_clauses() -> list[Validation]:
    """INV-SRVMOD-01 and MC-CB-01, but for the share of the sessions."""
    schedulers = texts(sorted(batching.KNOWN_SCHEDULERS))
    return [
        engine(INV_1, "iteration-level", absent_or("sequences", "$x.matches('^[0-9]{1,9}$') && int($x) > 1"),
               "max_num_seqs is one sequence at a time, or no plain number", "leave it to the plan", "variables.sequences"),
        engine(INV_1, "iteration-level", absent_or("scheduler", f"$x in {schedulers}"), "scheduler isn't vLLM's own",
               "leave --scheduler-cls out", "variables.scheduler"),
        engine(CB, "chunked-prefill", "variables.noChunks in ['', '--enable-chunked-prefill']",
               "chunked prefill is off", "--enable-chunked-prefill", "variables.noChunks"),
        engine(CB, "admission", absent_or("prefillInterval", "$x in ['0', '1']"), "prompts start only every few steps",
               "leave --prefill-schedule-interval out", "variables.prefillInterval"),
    ]  # fmt: skip


def stream_clauses() -> list[Validation]:
    """MC-SE-01 and the parts of INV-SRVMOD-02 that are the engine's own."""
    debugging = ["CUDA_LAUNCH_BLOCKING", "VLLM_TRACE_FUNCTION"]
    quiet = (
        f"variables.env.all(e, !(e.name in {texts(debugging)}) || (has(e.value) && e.value in ['', '0', 'false']))"
    )
    return [
        engine(SE, "stream-interval", absent_or("streamInterval", "$x == '1'"), "stream_interval isn't 1",
               "--stream-interval=1", "variables.streamInterval"),
        engine(SE, "openai-api", "variables.grpc == '' && variables.headless == ''", "no OpenAI API over HTTP",
               "leave --grpc and --headless out"),
        engine(INV_2, "smooth-steps", "variables.eager in ['', '--no-enforce-eager']", "eager mode: no CUDA graphs",
               "leave --enforce-eager out"),
        engine(INV_2, "smooth-steps", "variables.optimization != '0'", "optimisation level 0: no CUDA graphs",
               "leave -O0 out"),
        engine(INV_2, "smooth-steps", absent_or("cpuOffload", "$x.matches('^0(\\\\.0*)?$')"), "weights cross PCIe",
               "leave --cpu-offload-gb out", "variables.cpuOffload"),
        engine(INV_2, "smooth-steps", quiet, "a debugging variable is set", f"leave {' and '.join(debugging)} out"),
        engine(INV_2, "measured", "variables.noStats == ''", "--disable-log-stats takes the metrics away", "leave it out"),
    ]  # fmt: skip


def version_clauses(table: Table) -> list[Validation]:
    """ENGINE-VERSION: words that the pinned parser refuses, or that aren't written in full."""
    bare = "variables.given.filter(g, g.name in variables.bare)"
    valued = "variables.given.filter(g, !(g.name in variables.bare))"
    kinds = {
        kind: sorted(f.replace("_", "-") for o in table.options if o.type == kind and o.kind == "value" for f in o.flags)
        for kind in ("int", "float", "size", "size-or-auto")
    }
    whole = texts([*kinds["int"], *kinds["size"], *kinds["size-or-auto"]])
    choices = ", ".join(
        f"{text(flag.replace('_', '-'))}: {texts(list(map(str, option.choices)))}"
        for option in table.options if option.choices for flag in option.flags
    )  # fmt: skip
    lists = texts(sorted(f.replace("_", "-") for o in table.options if o.nargs for f in o.flags))
    needs = [
        ("toolChoice", f"'--tool-call-parser' in {_names()}", "enable_auto_tool_choice needs tool_call_parser"),
        ("logOutputs", "variables.logRequests == '--enable-log-requests'", "enable_log_outputs needs enable_log_requests"),
        ("requestMetrics", "variables.noStats == ''", "enable_per_request_metrics needs the metrics"),
    ]
    shown = "variables.given.filter(g, !(g.name in variables.known)).map(g, g.name).join(', ')"
    return [
        engine(VERSION, "options", f"variables.given.all(g, g.name in variables.known)",
               f"vLLM {table.version} has no such option, or its name isn't written in full", "options by their whole names",
               shown),
        engine(VERSION, "options", f"{bare}.all(g, g.joined == '')", "a switch has a value", "the flag alone"),
        engine(VERSION, "options", f"{valued}.all(g, g.value != '' || g.name in {lists})", "an option has no value", "--flag=value",
               valued + ".filter(g, g.value == '').map(g, g.name).join(', ')"),
        engine(VERSION, "options", f"{valued}.all(g, !(g.name in {whole}) || g.value.matches('^-?[0-9]{{1,18}}$') || "
               f"(g.value == 'auto' && g.name in {texts(kinds['size-or-auto'])}))", "a number isn't written in digits",
               "digits, without k, M or G",
               f"{valued}.filter(g, g.name in {whole} && !g.value.matches('^-?[0-9]{{1,18}}$')).map(g, g.name).join(', ')"),
        engine(VERSION, "options", f"{valued}.all(g, !(g.name in {texts(kinds['float'])}) || "
               "g.value.matches('^-?[0-9]*\\\\.?[0-9]+$'))", "a number isn't written in digits", "digits"),
        engine(VERSION, "options", f"{valued}.all(g, !(g.name in {{{choices}}}) || g.value in {{{choices}}}[g.name])",
               "a value isn't among the option's choices", "one of its choices"),
        engine(VERSION, "options", f"variables.free.size() <= 1 || {valued}.exists(g, g.name in {lists})",
               "words that belong to no option", "one model, and --flag=value", "variables.free.join(' ')"),
        engine(VERSION, "combinations", absent_or("utilization", "double($x) > 0.0 && double($x) <= 1.0"),
               "gpu_memory_utilization isn't a share", "more than 0, at most 1", "variables.utilization"),
        engine(VERSION, "combinations", absent_or("loadFormat", f"$x in {texts(sorted(LOAD_FORMATS))}"),
               "load_format is another", "auto", "variables.loadFormat"),
        engine(VERSION, "combinations", "variables.batchedTokens == '' || variables.sequences == '' || "
               "int(variables.batchedTokens) >= int(variables.sequences)", "max_num_batched_tokens is below max_num_seqs",
               "at least max_num_seqs"),
        engine(VERSION, "combinations", "variables.noChunks in ['', '--enable-chunked-prefill'] || variables.batchedTokens == '' || "
               "variables.modelLength in ['', 'auto'] || int(variables.batchedTokens) >= int(variables.modelLength)",
               "without chunked prefill max_num_batched_tokens is below max_model_len", "--enable-chunked-prefill"),
        *(
            engine(VERSION, "combinations", f"!(variables.{name}.startsWith('--enable')) || {other}", what, what)
            for name, other, what in needs
        ),
    ]  # fmt: skip


def _names() -> str:
    return "variables.given.map(g, g.name)"


def all_of(table: Table) -> list[Validation]:
    """Every validation on an engine's own container."""
    return [
        *reading(),
        *hardware_clauses(),
        *island_clauses(),
        *memory_clauses(),
        *batching_clauses(),
        *stream_clauses(),
        *version_clauses(table),
    ]


def more_variables() -> dict[str, str]:
    """Variables that validations here need beside the words'."""
    amount = (
        "(has(c.resources) ? (has(c.resources.limits) && $g in c.resources.limits ? quantity(string(c.resources.limits[$g])).asInteger() : "
        "has(c.resources.requests) && $g in c.resources.requests ? quantity(string(c.resources.requests[$g])).asInteger() : 0) : 0)"
    ).replace("$g", GPU)
    containers = f"(variables.spec.containers + {list_of('variables.spec', 'initContainers')})"
    return {
        "podGpus": f"{containers}.map(c, {amount}).sum()",
        "simulated": "variables.words.exists(w, w.matches('^(.*/)?(srvmod_engine|srvmod-engine)$'))",
        "otherEngine": "variables.one && !variables.readable && !variables.imageEntry && variables.starts.size() == 0 && "
        f"!variables.words.exists(w, w.matches('\\\\s') || w.contains('$')) && !variables.words.exists(w, w.matches('vllm')) && "
        f"!variables.words.exists(w, w.matches({text(FLAG)}) && w.contains('tensor-parallel-size'))",
    }
