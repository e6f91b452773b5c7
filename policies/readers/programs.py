"""Which program a command runs: engines by their commands, their modules or, without a command, their images."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from srvmod.policies.facts import Place, Software
from srvmod.policies.readers.words import Word

MODULES = {
    "vllm.entrypoints.openai.api_server": Software.VLLM,
    "vllm.entrypoints.api_server": Software.VLLM,
    "vllm": Software.VLLM,
    "vllm.entrypoints.cli.main": Software.VLLM,
    "srvmod_engine": Software.SIMULATED,
    "sglang.launch_server": Software.SGLANG,
    "tensorrt_llm.commands.serve": Software.TENSORRT_LLM,
    "lmdeploy": Software.LMDEPLOY,
    "huggingfaceserver": Software.TRANSFORMERS,
    "dynamo.vllm": Software.VLLM,
    "dynamo.sglang": Software.SGLANG,
    "dynamo.trtllm": Software.TENSORRT_LLM,
    "fastchat.serve.vllm_worker": Software.FASTCHAT,
    "fastchat.serve.model_worker": Software.FASTCHAT,
}
"""Python modules that serve a model."""
WHOLE_MODULES = ("api_server", "api_server.py", "dynamo.vllm")
"""Modules of vLLM that serve without a sub-command, by how they end."""
SUBCOMMANDS = {Software.VLLM: {"serve"}, Software.SIMULATED: {"serve"}, Software.OLLAMA: {"serve"}}
"""Sub-commands that serve; others of the same program don't."""
PROGRAMS = {
    "vllm": Software.VLLM,
    "vllm-rs": Software.VLLM,
    "srvmod-engine": Software.SIMULATED,
    "text-generation-launcher": Software.TGI,
    "text-generation-server": Software.TGI,
    "trtllm-serve": Software.TENSORRT_LLM,
    "tritonserver": Software.TRITON,
    "llama-server": Software.LLAMA_CPP,
    "torchserve": Software.TORCHSERVE,
    "lmdeploy": Software.LMDEPLOY,
    "sglang": Software.SGLANG,
    "transformers": Software.TRANSFORMERS,
    "ollama": Software.OLLAMA,
    "djl-serving": Software.DJL,
}
IMAGES = (
    (
        re.compile(r"(^|/)(vllm|vllm-(openai|cpu|gpu|cuda|rocm|rhel)[a-z0-9-]*|rhaiis-vllm[a-z0-9-]*)([:@]|$)"),
        Software.VLLM,
    ),
    (re.compile(r"(^|/)text-generation-inference([-:@]|$)"), Software.TGI),
    (re.compile(r"(^|/)sglang([-:@]|$)"), Software.SGLANG),
    (re.compile(r"(^|/)tritonserver([-:@]|$)"), Software.TRITON),
    (re.compile(r"(^|/)(torchserve|pytorch/torchserve)([-:@]|$)"), Software.TORCHSERVE),
    (re.compile(r"(^|/)huggingfaceserver([-:@]|$)"), Software.TRANSFORMERS),
    (re.compile(r"(^|/)lmdeploy([-:@]|$)"), Software.LMDEPLOY),
    (re.compile(r"(^|/)(llama\.cpp|llama-server)([-:@]|$)"), Software.LLAMA_CPP),
    (re.compile(r"(^|/)ollama([:@]|$)"), Software.OLLAMA),
    (re.compile(r"(^|/)djl-(serving|inference)([:@]|$)"), Software.DJL),
    (re.compile(r"(^|/)nim/"), Software.NIM),
)
"""Images whose entry point serves a model, for containers without a command."""
PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
# Programs that only read, print or look for their words.
NEVER_RUN = {
    "echo", "printf", "grep", "pgrep", "pkill", "killall", "which", "type", "pip", "pip3", "test", "[", "[[",
    "cat", "ls", "curl", "wget", "sleep", "mkdir", "cp", "mv", "rm", "chmod", "sed", "awk", "kubectl", "helm", "true",
    "set", "trap", "alias", "cd", "export", "apt-get", "tee", "huggingface-cli", "hf", "aws",
}  # fmt: skip
VLLM_OPTIONS = re.compile(
    r"--(?:tensor[-_]parallel[-_]size|max[-_]num[-_]seqs|gpu[-_]memory[-_]utilization|max[-_]num[-_]batched[-_]tokens"
    r"|served[-_]model[-_]name|max[-_]model[-_]len|(?:enable|disable)[-_]chunked[-_]prefill"
    r"|kv[-_]cache[-_]dtype)(?:=|$)|-tp(?:=|$)"
)
SHARED_OPTIONS = re.compile(r"--block[-_]size(?:=|$)")
"""Options that programs of other kinds have too: they count beside others only."""
SAYS_VLLM = re.compile(r"(^|[^a-z])vllm([^a-z]|$)", re.IGNORECASE)
OTHER_OPTIONS = re.compile(
    r"--(?:model[-_]path|mem[-_]fraction[-_]static|num[-_]shard|max[-_]batch[-_]prefill[-_]tokens|tp[-_]size|backend"
    r"|model[-_]repository|n[-_]gpu[-_]layers|model[-_]id)(?:=|$)"
)


@dataclass(frozen=True, slots=True)
class Program:
    """An engine's program and the words after it."""

    software: Software
    words: tuple[Word, ...]
    first: Word


def find(words: Sequence[Word]) -> Program | None:
    """The engine that a command runs, behind wrappers such as `exec`, `env`, `numactl` or `tini`."""
    if not words or _name(words[0].text) in NEVER_RUN:
        return None
    for index, word in enumerate(words):
        following = list(words[index + 1 :])
        name = _name(word.text)
        if word.text == "-m" and following and (software := MODULES.get(following[0].text)):
            return _program(software, following[1:], following[0])
        if PYTHON.fullmatch(word.text):
            found = _module(following)
            if found is not None:
                return found
        software = PROGRAMS.get(name)
        if software is not None:
            return _program(software, following, word)
    return None


def _module(words: list[Word]) -> Program | None:
    index = script_of(words)
    if index < len(words) and _name(words[index].text) == "api_server.py":
        return _program(Software.VLLM, words[index + 1 :], words[index])
    return None


def script_of(words: Sequence[Word]) -> int:
    """Where the script stands among Python's words, or what takes its place: -c, -m; their number if nothing does."""
    index = 0
    while index < len(words) and words[index].text.startswith("-") and words[index].text not in {"-c", "-m", "-"}:
        # -W and -X take a value, attached or not.
        index += 2 if words[index].text in {"-W", "-X"} else 1
    return index


def _program(software: Software, words: list[Word], first: Word) -> Program | None:
    wanted = SUBCOMMANDS.get(software)
    module = first.text.endswith(WHOLE_MODULES)
    if wanted and not module:
        if not words or words[0].text not in wanted:
            unknown = bool(words) and bool(words[0].unknown)
            return Program(software, tuple(words), first) if unknown else None
        words = words[1:]
    return Program(software, tuple(words), first)


def of_image(image: str, words: Sequence[Word], gpus: bool) -> Program | None:
    """The engine of a container without a command: its image's entry point gets the words.

    An unknown image serves with vLLM where its words are vLLM's: one of them with GPUs, else two; or where it is named
    after vLLM, has GPUs and is told to serve. A script of Python's as the first word is the program itself.
    """
    software = next((software for pattern, software in IMAGES if pattern.search(image)), None)
    first = words[0] if words else None
    if software is None:
        texts = [word.text for word in words]
        own = sum(1 for text in texts if VLLM_OPTIONS.match(text))
        own += sum(1 for text in texts if own and SHARED_OPTIONS.match(text))
        other = any(OTHER_OPTIONS.match(text) for text in texts) or (bool(texts) and texts[0].endswith(".py"))
        serves = gpus and texts[:1] == ["serve"] and SAYS_VLLM.search(image) is not None
        if serves or (own >= (1 if gpus else 2) and not other):
            software = Software.VLLM
        elif not any(PROGRAMS.get(_name(word.text)) for word in words[:1]):
            return None
    if first is not None and (found := find(words)) is not None:
        return found
    if software is None:
        return None
    rest = list(words)
    if software is Software.VLLM and rest and rest[0].text == "serve":
        rest = rest[1:]
    return Program(software, tuple(rest), first or Word("", _nowhere()))


def _nowhere() -> Place:
    return Place("")


def _name(text: str) -> str:
    return text.rpartition("/")[2]
