"""Engines that a custom resource declares by fields instead of a command: Ray Serve, KServe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.policies.facts import Place, Software
from srvmod.policies.readers.programs import Program
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.words import Word
from srvmod.policies.readers.yamltext import BadText, documents

KSERVE_OWN = {
    "--model_name", "--model-name", "--model_dir", "--model-dir", "--model_id", "--model-id", "--model_revision",
    "--backend", "--http_port", "--grpc_port", "--task", "--workers", "--max_model_len", "--return_token_type_ids",
}  # fmt: skip
"""Options of KServe's own server, which hands the rest to vLLM."""
OWN_CODE = re.compile(r"(^|[^a-z])v?llm([^a-z]|$)|tensor_?parallel", re.IGNORECASE)
"""What an application of one's own says of itself when it serves a language model."""
DEEPEST_CONFIG = 4
KSERVE_FORMATS = {"huggingface", "vllm"}
PARALLELISM = {"tensor": "tensor-parallel-size", "pipeline": "pipeline-parallel-size", "data": "data-parallel-size"}


def ray_serve(config: Cursor) -> tuple[Program, ...]:
    """Engines of a RayService's serveConfigV2, a YAML text."""
    text = config.raw()
    if not text:
        return ()
    try:
        roots = [document.root for document in documents(text)]
    except BadText as error:
        place = place_in_text(config, error.line - 1)
        return (Program(Software.VLLM, (Word("", place, f"serveConfigV2 {error.why}"),), Word("", place)),)
    found: list[Program] = []
    for node in roots:
        for application in Cursor(node, config.place.at(None, config.place.path))["applications"].items():
            engines = [_llm_config(one, config) for one in _llm_configs(application["args"])]
            path = application["import_path"]
            if not engines and any(OWN_CODE.search(text) for text in (path.raw(), *_names(application))):
                why = f"{path.raw()} is Python code, which isn't read"
                engines = [Program(Software.VLLM, (Word("", _moved(path, config), why),), Word("", config.place))]
            found.extend(engines)
    return tuple(found)


def _llm_configs(args: Cursor, depth: int = 0) -> Iterator[Cursor]:
    """Engines among an application's arguments: a list of them, or one for each part of the work."""
    if args["engine_kwargs"] or args["tensor_parallel_size"]:
        yield args
        return
    for key, child in args.entries():
        if key == "llm_configs":
            yield from child.items()
        elif depth < DEEPEST_CONFIG:
            yield from _llm_configs(child, depth + 1)


def _names(application: Cursor) -> Iterator[str]:
    """Variables of an application's environment, and its name."""
    yield application["name"].raw()
    for key, child in application.at("runtime_env", "env_vars").entries():
        yield key
        yield child.raw()


def _llm_config(one: Cursor, config: Cursor) -> Program:
    place = _moved(one, config)
    if one.raw():
        return Program(Software.VLLM, (Word("", place, f"{one.raw()} isn't in the input"),), Word("", place))
    settings = one["engine_kwargs"] or one
    words: list[Word] = []
    source = one.at("model_loading_config", "model_source") or one.at("model_loading_config", "model_id")
    if source.raw():
        words.append(Word(source.raw(), _moved(source, config)))
    for key, child in settings.entries():
        words.extend(_option(key, child, _moved(child, config)))
    if not settings["distributed_executor_backend"]:
        # Ray Serve's workers are Ray actors; only STRICT_PACK keeps them on one node.
        strategy = one.at("placement_group_config", "strategy").raw()
        backend = "mp" if strategy == "STRICT_PACK" else "ray"
        words.append(Word(f"--distributed-executor-backend={backend}", place))
    return Program(Software.VLLM, tuple(words), Word("", place))


def _option(key: str, child: Cursor, place: Place) -> Iterator[Word]:
    name = f"--{key.replace('_', '-')}"
    if unknown := child.opaque:
        yield Word(f"{name}=", place, unknown.reason)
    elif child.raw().lower() == "true":
        yield Word(name, place)
    elif child.raw().lower() == "false":
        yield Word(f"--no-{key.replace('_', '-')}", place)
    elif child.raw():
        yield Word(f"{name}={child.raw()}", place)


def _moved(cursor: Cursor, text: Cursor) -> Place:
    return place_in_text(text, (cursor.place.line or 1) - 1)


def kserve_model(predictor: Cursor) -> tuple[Program, ...]:
    """The runtime that `predictor.model` asks for, where it is the one around vLLM."""
    model = predictor["model"]
    if model.at("modelFormat", "name").raw().lower() not in KSERVE_FORMATS:
        return ()
    words: list[Word] = []
    software = Software.VLLM
    items = list(model["args"].items())
    index = 0
    while index < len(items):
        item = items[index]
        index += 1
        name, equals, value = item.raw().partition("=")
        if name in KSERVE_OWN:
            if not equals and index < len(items) and not items[index].raw().startswith("-"):
                value = items[index].raw()
                index += 1
            if name == "--backend" and value == "huggingface":
                software = Software.TRANSFORMERS
            elif name == "--max_model_len":
                words.append(Word(f"--max-model-len={value}", item.place))
            continue
        unknown = item.opaque
        words.append(Word(item.raw(), item.place, unknown.reason if unknown else ""))
    worker = predictor["workerSpec"]
    for key, flag in (
        ("tensorParallelSize", "tensor-parallel-size"),
        ("pipelineParallelSize", "pipeline-parallel-size"),
    ):
        words.extend(_option(flag, worker[key], worker[key].place) if worker[key] else ())
    return (Program(software, tuple(words), Word("", model.place)),)


def llm_inference_service(part: Cursor, base_refs: Cursor) -> tuple[Program, ...]:
    """The engine of an LLMInferenceService: its runtime is vLLM, its sizes are in `parallelism`."""
    words: list[Word] = []
    for one in base_refs.items():
        words.append(Word("", one.place, f"options may come from the base {one['name'].raw()!r}, which isn't read"))
    for key, flag in PARALLELISM.items():
        child = part.at("parallelism", key)
        if child:
            words.extend(_option(flag, child, child.place))
    for container in part.at("template", "containers").items():
        for one in container["env"].items():
            if one["name"].raw() == "VLLM_ADDITIONAL_ARGS":
                words.extend(Word(text, one.place) for text in one["value"].raw().split())
        words.extend(Word(item.raw(), item.place) for item in container["args"].items() if not container["command"])
    return (Program(Software.VLLM, tuple(words), Word("", part.place)),)
