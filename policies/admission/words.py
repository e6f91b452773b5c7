"""Variables of CEL that find the engine of a pod and its options, where its command is a plain list."""

from __future__ import annotations

from srvmod.policies.admission.policy import list_of, map_of, text, texts
from srvmod.policies.engine_versions import Table
from srvmod.policies.facts import NVIDIA_GPU, Software
from srvmod.policies.readers.programs import IMAGES, MODULES, PROGRAMS, VLLM_OPTIONS

SAYS_VLLM = r"(?i)(^|[^a-z])vllm([^a-z]|$)"
SHELL = r"^(.*/)?(ba|da|a|z|k)?sh$"
INTERPRETER = r"^(.*/)?python[0-9.]*$"
ASSIGNMENT = r"^[A-Za-z_][A-Za-z0-9_]*="
FLAG = r"^-[^0-9.]"
OPTION_NAMES = {
    "tensorParallel": "tensor_parallel_size",
    "pipelineParallel": "pipeline_parallel_size",
    "dataParallel": "data_parallel_size",
    "prefillParallel": "prefill_context_parallel_size",
    "nodes": "nnodes",
    "backend": "distributed_executor_backend",
    "dataAddress": "data_parallel_address",
    "masterAddress": "master_addr",
    "deviceIds": "device_ids",
    "blockSize": "block_size",
    "kvDtype": "kv_cache_dtype",
    "quantization": "quantization",
    "dtype": "dtype",
    "utilization": "gpu_memory_utilization",
    "kvBytes": "kv_cache_memory_bytes",
    "kvBlocks": "num_gpu_blocks_override",
    "modelLength": "max_model_len",
    "sequences": "max_num_seqs",
    "activeSequences": "max_num_active_seqs",
    "queued": "max_num_queued_reqs",
    "batchedTokens": "max_num_batched_tokens",
    "scheduler": "scheduler_cls",
    "prefillInterval": "prefill_schedule_interval",
    "streamInterval": "stream_interval",
    "optimization": "optimization_level",
    "compilation": "compilation_config",
    "cpuOffload": "cpu_offload_gb",
    "buckets": "custom_histogram_buckets",
    "loadFormat": "load_format",
    "shutdownTimeout": "shutdown_timeout",
    "modelFlag": "model",
    "runner": "runner",
    "speculation": "speculative_config",
}
"""Variable → the option's destination; its value is the last one given, or empty."""
SWITCHES = {
    "grpc": "grpc",
    "headless": "headless",
    "eager": "enforce_eager",
    "noStats": "disable_log_stats",
    "noChunks": "enable_chunked_prefill",
    "toolChoice": "enable_auto_tool_choice",
    "logOutputs": "enable_log_outputs",
    "logRequests": "enable_log_requests",
    "requestMetrics": "enable_per_request_metrics",
}
"""Variable → the switch's destination; its value is the last flag given, or empty."""


def _alternatives(names: list[str]) -> str:
    return "|".join(sorted(name.replace(".", r"\.").replace("+", r"\+") for name in names))


PROGRAM = f"^(.*/)?({_alternatives(list(PROGRAMS))})$"
MODULE = rf"^({_alternatives(list(MODULES))})$|(^|/)api_server\.py$"
INSIDE = rf"(?i)({_alternatives([*PROGRAMS, *MODULES])}|api_server\.py)"
IMAGE = "|".join(f"({pattern.pattern})" for pattern, _ in IMAGES)
VLLM_IMAGE = "|".join(f"({pattern.pattern})" for pattern, software in IMAGES if software is Software.VLLM)
STARTERS = r"^(.*/)?(vllm|vllm-rs|srvmod-engine)$|^(srvmod_engine|vllm|vllm\.entrypoints\.cli\.main)$"
API_MODULES = r"^vllm\.entrypoints\.(openai\.)?api_server$"


def words(container: str) -> str:
    """Command and arguments of a container as one list."""
    return f"({list_of(container, 'command')} + {list_of(container, 'args')})"


def gpus_of(container: str) -> str:
    """Whether a container asks for NVIDIA devices, whole or parts of them."""
    return (
        f"(has({container}.resources) && ["
        f"{map_of(container + '.resources', 'requests')}, {map_of(container + '.resources', 'limits')}"
        f"].exists(r, r.exists(k, k.startsWith('nvidia.com/'))))"
    )


def engine_like(c: str) -> str:
    """Whether a container may be an engine: by its words, or by its image where it has no command of its own."""
    references = f"{words(c)}.exists(w, w.contains('$'))"
    return " || ".join(
        (
            f"{words(c)}.exists(w, w.matches({text(PROGRAM)}) || w.matches({text(MODULE)})"
            f" || (w.matches('\\\\s') && w.matches({text(INSIDE)})))",
            f"(!has({c}.command) && ({c}.image.matches({text(IMAGE)})"
            f" || {list_of(c, 'args')}.exists(w, w.matches({text('^' + VLLM_OPTIONS.pattern)}))))",
            f"({references} && {list_of(c, 'env')}.exists(e, has(e.value) && e.value.matches({text(INSIDE)})))",
            f"({gpus_of(c)} && ({words(c)}.size() == 0 || {words(c)}[0].matches({text(INTERPRETER)}))"
            f" && ({c}.name.matches({text(SAYS_VLLM)})"
            f" || {c}.image.matches({text(SAYS_VLLM)}) || object.metadata.?name.orValue('').matches({text(SAYS_VLLM)})"
            f" || {list_of(c, 'env')}.exists(e, e.name.startsWith('VLLM_'))))",
        )
    )


def hidden(c: str) -> str:
    """Whether what a container runs is said elsewhere: scripts in files, words from ConfigMaps."""
    elsewhere = f"({list_of(c, 'envFrom')}.exists(e, has(e.configMapRef)) || " + (
        f"{list_of(c, 'env')}.exists(e, has(e.valueFrom) && has(e.valueFrom.configMapKeyRef)))"
    )
    mounted = (
        f"{words(c)}.size() > 0 && {list_of(c, 'volumeMounts')}.exists(m, {words(c)}[0].startsWith(m.mountPath)"
        f" && {list_of('variables.spec', 'volumes')}.exists(v, v.name == m.name"
        " && (has(v.configMap) || has(v.projected))))"
    )
    shell = f"{words(c)}.exists(w, w.matches({text(SHELL)}))"
    inline = f"{words(c)}.exists(w, w.matches('^-[a-zA-Z]*c[a-zA-Z]*$'))"
    return " || ".join(
        (
            f"({mounted})",
            f"({shell} && !{inline})",
            rf"{words(c)}.exists(w, w.matches('\\.(sh|bash)$'))",
            f"({elsewhere} && {words(c)}.exists(w, w.contains('$')))",
        )
    )


def variables(table: Table) -> dict[str, str]:
    """The chain of variables: pod, engines, words, options, each option's value."""
    found = {
        "spec": "has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec.template.spec : "
        "has(object.spec.template) ? object.spec.template.spec : object.spec",
        "template": "has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec.template : "
        "has(object.spec.template) ? object.spec.template : object",
        "containers": "variables.spec.containers + (has(variables.spec.initContainers) ? "
        "variables.spec.initContainers.filter(c, has(c.restartPolicy) && c.restartPolicy == 'Always') : [])",
        "labels": "variables.template.?metadata.?labels.orValue({})",
        "engines": f"variables.containers.filter(c, {engine_like('c')})",
        "one": "variables.engines.size() == 1",
        "engine": "variables.engines.size() > 0 ? variables.engines[0] : {}",
        "words": "variables.one ? variables.engines.map(c, " + words("c") + ")[0] : []",
        "imageEntry": "variables.one && !has(variables.engine.command) && "
        f"variables.engine.image.matches({text(VLLM_IMAGE)})",
        "starts": "lists.range(variables.words.size()).filter(i, i > 0 && ("
        f"(variables.words[i] == 'serve' && variables.words[i - 1].matches({text(STARTERS)})) || "
        f"(variables.words[i - 1] == '-m' && variables.words[i].matches({text(API_MODULES)}))))",
        "readable": "variables.one && (variables.starts.size() > 0 || variables.imageEntry) && "
        f"!variables.words.exists(w, w.matches({text(SHELL)})) && !variables.words.exists(w, w.contains('$('))",
        "start": "!variables.readable ? 0 : variables.starts.size() > 0 ? variables.starts[0] + 1 : "
        "variables.words.size() > 0 && variables.words[0] == 'serve' ? 1 : 0",
        "options": "variables.readable ? variables.words.slice(variables.start, variables.words.size()) : []",
        "given": f"variables.options.transformList(i, w, w.matches({text(FLAG)}), {{"
        "'name': (w.contains('=') ? w.substring(0, w.indexOf('=')) : w).replace('_', '-'), "
        "'joined': w.contains('=') ? 'yes' : '', "
        "'value': w.contains('=') ? w.substring(w.indexOf('=') + 1) : "
        f"i + 1 < variables.options.size() && !variables.options[i + 1].matches({text(FLAG)}) ? "
        "string(variables.options[i + 1]) : ''})",
        "known": texts(sorted({f for o in table.options for f in _spelled(o.flags)})),
        "bare": texts(sorted(f for o in table.options if o.kind in {"true", "switch"} for f in _spelled(o.flags))),
        "free": f"variables.options.transformList(i, w, !w.matches({text(FLAG)}) && (i == 0 || "
        f"!variables.options[i - 1].matches({text(FLAG)}) || variables.options[i - 1].contains('=') || "
        "variables.options[i - 1].replace('_', '-') in variables.bare), w)",
        "env": "variables.one ? " + list_of("variables.engine", "env") + " : []",
    }
    for name, dest in OPTION_NAMES.items():
        flags = texts(_spelled(table.by_dest[dest].flags))
        given = f"variables.given.filter(g, g.name in {flags})"
        found[name] = f"{given}.size() == 0 ? '' : {given}[{given}.size() - 1].value"
    for name, dest in SWITCHES.items():
        if dest not in table.by_dest:
            continue
        given = f"variables.given.filter(g, g.name in {texts(_spelled(table.by_dest[dest].flags))})"
        found[name] = f"{given}.size() == 0 ? '' : {given}[{given}.size() - 1].name"
    found["model"] = "variables.free.size() > 0 ? variables.free[0] : variables.modelFlag"
    found["judged"] = "variables.readable && !(variables.runner in ['pooling', 'draft'])"
    found["gpuResource"] = text(NVIDIA_GPU)
    return found


def _spelled(flags: tuple[str, ...]) -> list[str]:
    """Flags with dashes, as words are compared."""
    return list(dict.fromkeys(flag.replace("_", "-") for flag in flags))
