"""The clauses on an engine's options: cache, batching, streams, and what the pinned version's parser refuses."""

from __future__ import annotations

from srvmod.contract import MODELS, Clause
from srvmod.policies.admission.engines import absent_or, engine, hardware_clauses, island_clauses, reading
from srvmod.policies.admission.policy import Validation, text, texts
from srvmod.policies.engine_versions import Table
from srvmod.policies.rules import Topic, batching, memory
from srvmod.policies.rules.engine_version import LOAD_FORMATS

KV, CB, SE = Clause.MC_KV_01, Clause.MC_CB_01, Clause.MC_SE_01
INV_1, INV_2 = Clause.INV_SRVMOD_01, Clause.INV_SRVMOD_02
VERSION = Topic.ENGINE_VERSION
JSON = r"^\\s*(\\{\\s*(\".*)?\\}|\\[.*\\]|None)?\\s*$"
"""How JSON begins and ends; what is between isn't parsed here."""


def memory_clauses() -> list[Validation]:
    """MC-KV-01, but for the room of the cache."""
    other = memory.OTHER_FORMATS.pattern
    formats = texts(sorted(memory.FP8_QUANTIZATIONS))
    known = "|".join(name.replace(".", r"\.") for name in MODELS)
    return [
        engine(
            KV,
            "kv-block",
            absent_or("blockSize", "$x == '16'"),
            "block_size isn't 16",
            "--block-size=16",
            "variables.blockSize",
        ),
        engine(
            KV,
            "kv-dtype",
            absent_or("kvDtype", f"$x in {texts(list(memory.DTYPES))}"),
            "kv_cache_dtype is another",
            f"one of {', '.join(memory.DTYPES)}",
            "variables.kvDtype",
        ),
        engine(
            KV,
            "weights",
            absent_or("quantization", f"$x in {formats}"),
            "quantization isn't FP8",
            "an FP8 checkpoint, and no --quantization",
            "variables.quantization",
        ),
        engine(
            KV, "weights", absent_or("dtype", "!($x in ['float', 'float32'])"), "dtype is float32", "leave --dtype out"
        ),
        engine(
            KV,
            "weights",
            f"!variables.model.matches({text('(?i)' + other)}) || variables.model.matches('(?i)fp8|w8a8')",
            "the model isn't an FP8 checkpoint",
            "an FP8 checkpoint",
            "variables.model",
        ),
        engine(
            KV,
            "weights",
            f"!variables.model.matches({text(f'^({known})$')}) || variables.model.matches('(?i)fp8|w8a8')"
            " || variables.quantization != ''",
            "a bf16 checkpoint that nothing quantises",
            "an FP8 checkpoint, or --quantization=fp8",
            "variables.model",
        ),
    ]


def batching_clauses() -> list[Validation]:
    """INV-SRVMOD-01 and MC-CB-01, but for the share of the sessions."""
    schedulers = texts(sorted(batching.KNOWN_SCHEDULERS))
    return [
        engine(
            INV_1,
            "iteration-level",
            absent_or("sequences", "$x.matches('^[0-9]{1,9}$') && int($x) > 1"),
            "max_num_seqs is one sequence at a time, or no plain number",
            "leave it to the plan",
            "variables.sequences",
        ),
        engine(
            INV_1,
            "iteration-level",
            absent_or("scheduler", f"$x in {schedulers}"),
            "scheduler isn't vLLM's own",
            "leave --scheduler-cls out",
            "variables.scheduler",
        ),
        engine(
            CB,
            "chunked-prefill",
            "variables.noChunks in ['', '--enable-chunked-prefill']",
            "chunked prefill is off",
            "--enable-chunked-prefill",
            "variables.noChunks",
        ),
        engine(
            CB,
            "admission",
            absent_or("prefillInterval", "$x in ['0', '1']"),
            "prompts start only every few steps",
            "leave --prefill-schedule-interval out",
            "variables.prefillInterval",
        ),
    ]


def stream_clauses() -> list[Validation]:
    """MC-SE-01 and the parts of INV-SRVMOD-02 that are the engine's own."""
    debugging = ["CUDA_LAUNCH_BLOCKING", "VLLM_TRACE_FUNCTION"]
    quiet = f"variables.env.all(e, !(e.name in {texts(debugging)}) || (has(e.value) && e.value in ['', '0', 'false']))"
    return [
        engine(
            SE,
            "stream-interval",
            absent_or("streamInterval", "$x == '1'"),
            "stream_interval isn't 1",
            "--stream-interval=1",
            "variables.streamInterval",
        ),
        engine(
            SE,
            "openai-api",
            "variables.grpc == '' && variables.headless == ''",
            "no OpenAI API over HTTP",
            "leave --grpc and --headless out",
        ),
        engine(
            INV_2,
            "smooth-steps",
            "variables.eager in ['', '--no-enforce-eager']",
            "eager mode: no CUDA graphs",
            "leave --enforce-eager out",
        ),
        engine(
            INV_2,
            "smooth-steps",
            r"!variables.compilation.matches('(?i)\"cudagraph_mode\"\\s*:\\s*(\"none\"|0)')",
            "cudagraph_mode is NONE: no CUDA graphs",
            "leave cudagraph_mode out",
        ),
        engine(
            INV_2,
            "smooth-steps",
            "variables.optimization != '0'",
            "optimisation level 0: no CUDA graphs",
            "leave -O0 out",
        ),
        engine(
            INV_2,
            "smooth-steps",
            absent_or("cpuOffload", "$x.matches('^0(\\\\.0*)?$')"),
            "weights cross PCIe",
            "leave --cpu-offload-gb out",
            "variables.cpuOffload",
        ),
        engine(INV_2, "smooth-steps", quiet, "a debugging variable is set", f"leave {' and '.join(debugging)} out"),
        engine(
            INV_2, "measured", "variables.noStats == ''", "--disable-log-stats takes the metrics away", "leave it out"
        ),
    ]


def version_clauses(table: Table) -> list[Validation]:
    """ENGINE-VERSION: words that the pinned parser refuses, or that aren't written in full."""
    bare = "variables.given.filter(g, g.name in variables.bare)"
    valued = "variables.given.filter(g, !(g.name in variables.bare))"
    auto = texts(_flags_of(table, "size-or-auto"))
    lists = texts(sorted(f.replace("_", "-") for o in table.options if o.nargs for f in o.flags))
    needs = [
        ("toolChoice", f"'--tool-call-parser' in {_names()}", "enable_auto_tool_choice needs tool_call_parser"),
        (
            "logOutputs",
            "variables.logRequests == '--enable-log-requests'",
            "enable_log_outputs needs enable_log_requests",
        ),
        ("requestMetrics", "variables.noStats == ''", "enable_per_request_metrics needs the metrics"),
    ]
    shown = "variables.given.filter(g, !(g.name in variables.known)).map(g, g.name).join(', ')"
    return [
        engine(
            VERSION,
            "options",
            "variables.given.all(g, g.name in variables.known)",
            f"vLLM {table.version} has no such option, or its name isn't written in full",
            "options by their whole names",
            shown,
        ),
        engine(VERSION, "options", f"{bare}.all(g, g.joined == '')", "a switch has a value", "the flag alone"),
        engine(
            VERSION,
            "options",
            f"{valued}.all(g, g.value != '' || g.name in {lists})",
            "an option has no value",
            "--flag=value",
            valued + ".filter(g, g.value == '').map(g, g.name).join(', ')",
        ),
        engine(
            VERSION,
            "options",
            f"{valued}.all(g, !(g.name in variables.whole) || g.value.matches('^-?[0-9]{{1,18}}$') || "
            f"(g.value == 'auto' && g.name in {auto}))",
            "a number isn't written in digits",
            "digits, without k, M or G",
            f"{valued}.filter(g, g.name in variables.whole && !g.value.matches('^-?[0-9]{{1,18}}$'))"
            ".map(g, g.name).join(', ')",
        ),
        engine(
            VERSION,
            "options",
            f"{valued}.all(g, !(g.name in {texts(_flags_of(table, 'float'))})"
            " || g.value.matches('^-?[0-9]*\\\\.?[0-9]+$'))",
            "a number isn't written in digits",
            "digits",
        ),
        engine(
            VERSION,
            "options",
            f"{valued}.all(g, !(g.name in variables.choices) || g.value in variables.choices[g.name])",
            "a value isn't among the option's choices",
            "one of its choices",
        ),
        engine(
            VERSION,
            "options",
            f"{valued}.all(g, !(g.name in {texts(_flags_of(table, 'json'))}) || (g.value.matches('{JSON}') && "
            "g.value.split('{').size() == g.value.split('}').size()))",
            "a value isn't JSON",
            "a mapping with names in double quotes",
        ),
        engine(
            VERSION,
            "options",
            f"variables.free.size() <= 1 || {valued}.exists(g, g.name in {lists})",
            "words that belong to no option",
            "one model, and --flag=value",
            "variables.free.join(' ')",
        ),
        engine(
            VERSION,
            "combinations",
            absent_or("utilization", "double($x) > 0.0 && double($x) <= 1.0"),
            "gpu_memory_utilization isn't a share",
            "more than 0, at most 1",
            "variables.utilization",
        ),
        engine(
            VERSION,
            "combinations",
            absent_or("loadFormat", f"$x in {texts(sorted(LOAD_FORMATS))}"),
            "load_format is another",
            "auto",
            "variables.loadFormat",
        ),
        engine(
            VERSION,
            "combinations",
            "variables.batchedTokens == '' || variables.sequences == '' || "
            "int(variables.batchedTokens) >= int(variables.sequences)",
            "max_num_batched_tokens is below max_num_seqs",
            "at least max_num_seqs",
        ),
        engine(
            VERSION,
            "combinations",
            "variables.noChunks in ['', '--enable-chunked-prefill'] || variables.batchedTokens == '' || "
            "variables.modelLength in ['', 'auto'] || int(variables.batchedTokens) >= int(variables.modelLength)",
            "without chunked prefill max_num_batched_tokens is below max_model_len",
            "--enable-chunked-prefill",
        ),
        *(
            engine(VERSION, "combinations", f"!(variables.{name}.startsWith('--enable')) || {other}", what, what)
            for name, other, what in needs
        ),
    ]


def _flags_of(table: Table, *types: str) -> list[str]:
    """Flags of options that take a value of some types, with dashes."""
    found = [o for o in table.options if o.type in types and o.kind == "value"]
    return sorted(flag.replace("_", "-") for option in found for flag in option.flags)


def variables(table: Table) -> dict[str, str]:
    """Options that take whole numbers, and those that take one of a few words."""
    choices = {f: o.choices for o in table.options if o.choices for f in o.flags}
    listed = ", ".join(f"{text(f.replace('_', '-'))}: {texts(list(map(str, c)))}" for f, c in choices.items())
    return {"whole": texts(_flags_of(table, "int", "size", "size-or-auto")), "choices": f"{{{listed}}}"}


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
