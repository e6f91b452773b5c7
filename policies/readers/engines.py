"""Engines among the containers of a workload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from srvmod.policies.engine_versions import Table
from srvmod.policies.facts import (
    NVIDIA_GPU,
    CommandLine,
    Engine,
    Fact,
    Known,
    Maybe,
    Place,
    Probe,
    Software,
    Suspect,
    Unknown,
    Workload,
)
from srvmod.policies.readers.commands import Container, Run
from srvmod.policies.readers.environment import ConfigMaps, Environment, environment
from srvmod.policies.readers.options import resolve
from srvmod.policies.readers.pods import amount, gpu_amounts
from srvmod.policies.readers.programs import SAYS_VLLM, Program
from srvmod.policies.readers.templates import Template
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.words import Word

NCCL_LINE = re.compile(r"[ \t]*(NCCL_[A-Z0-9_]{1,60})[ \t]*=[ \t]*(\S*)")
SLEEP = re.compile(r"\bsleep\s+([0-9]+)")


def of_template(template: Template, workload: Workload, maps: ConfigMaps, table: Table) -> Iterator[Engine | Suspect]:
    """Engines and what looks like one, in the order of the containers."""
    if template.unreadable is not None:
        yield Suspect(workload, f"{workload.kind} {workload.name}", template.unreadable)
        return
    containers = template.containers() or ([template.spec] if template.declared else [])
    for index, cursor in enumerate(containers):
        env = environment(cursor, workload.namespace, maps)
        container = Container(cursor, template.spec, workload.namespace, maps, env)
        if template.declared and index == 0:
            container.runs.extend(Run(_expanded(program, env)) for program in template.declared)
        else:
            container.read()
        for run in container.runs:
            yield _engine(container, _opened(run, template), workload, table)
        if not container.runs and (unknown := _suspicious(container, workload)):
            yield Suspect(workload, f"container {cursor['name'].raw()}", unknown)


def _expanded(program: Program, env: Environment) -> Program:
    """Declared words, with the container's variables in them."""
    words = tuple(word if word.unknown else env.expand(word.text, word.place) for word in program.words)
    return Program(program.software, words, program.first)


def _opened(run: Run, template: Template) -> Run:
    """A run whose options may come from elsewhere too."""
    if not template.open_words:
        return run
    more = Word("", template.spec.place, template.open_words)
    return replace(run, program=replace(run.program, words=(*run.program.words, more)))


def _suspicious(container: Container, workload: Workload) -> Unknown | None:
    """A reason to fail closed: a container with GPUs that says it is vLLM, but not how it is started."""
    gpus = any(one.resource == NVIDIA_GPU for one in gpu_amounts(container.cursor))
    names = [container.cursor["name"].raw(), container.cursor["image"].raw(), workload.name]
    says = any(SAYS_VLLM.search(name) for name in names) or any(
        name.startswith("VLLM_") for name in container.environment.values
    )
    if not (gpus and says):
        return None
    if container.unknowns:
        return container.unknowns[0]
    if container.cursor["command"] or container.cursor["args"]:
        return None  # It runs something else, and that can be read.
    return Unknown("its image's entry point isn't known, and it has no command", container.cursor.place)


def _engine(container: Container, run: Run, workload: Workload, table: Table) -> Engine:
    cursor = container.cursor
    place = run.program.first.place if run.program.first.place.source else cursor.place
    inherited = {name: fact for name, fact in container.environment.values.items() if name not in run.removed}
    env: Mapping[str, Fact[str]] = {**inherited, **run.assigned}
    from_file, opened = _nccl_file(container, env)
    env = {**from_file, **env}
    if run.program.software in {Software.VLLM, Software.SIMULATED}:
        line = resolve(run.program.words, table, place, container.open_file)
    else:
        line = CommandLine(place, "", other_options(run), None)
    return Engine(
        place=cursor.place,
        workload=workload,
        container=cursor["name"].raw(),
        software=run.program.software,
        line=line,
        env=env,
        image=cursor["image"].string(),
        gpus=tuple(gpu_amounts(cursor)),
        startup=probe(cursor["startupProbe"]),
        readiness=probe(cursor["readinessProbe"]),
        liveness=probe(cursor["livenessProbe"]),
        pre_stop=_pre_stop(cursor.at("lifecycle", "preStop")),
        open_env=container.environment.unknown or run.opened or opened,
        cpu=amount(cursor, "cpu", 1000),
        memory=amount(cursor, "memory"),
    )


def _nccl_file(container: Container, env: Mapping[str, Fact[str]]) -> tuple[dict[str, Fact[str]], Unknown | None]:
    """NCCL's settings from its own file, which variables go before; and why there may be more of them."""
    named = env.get("NCCL_CONF_FILE")
    if isinstance(named, Unknown):
        return {}, named
    found = container.open_file(named.value if named is not None else "/etc/nccl.conf")
    if isinstance(found, Cursor):
        lines = ((NCCL_LINE.match(line), at) for at, line in enumerate(found.raw().splitlines()))
        return {one[1]: Known(one[2], place_in_text(found, at), one[0].strip()) for one, at in lines if one}, None
    if isinstance(found, Unknown) or named is None:
        return {}, found if isinstance(found, Unknown) else None
    return {}, Unknown(f"NCCL_CONF_FILE names {named.value}, which isn't in the input", named.place)


def other_options(run: Run) -> Mapping[str, Fact[str | int | float | bool | tuple[str, ...] | None]]:
    """Options of software whose parser isn't known here: by their spelling, without values' types."""
    found: dict[str, Fact[str | int | float | bool | tuple[str, ...] | None]] = {}
    words = run.program.words
    for index, word in enumerate(words):
        if not word.text.startswith("-"):
            continue
        name, equals, value = word.text.partition("=")
        place: Place = word.place
        if not equals:
            following = words[index + 1] if index + 1 < len(words) else None
            value = following.text if following and not following.text.startswith("-") else "true"
        key = name.lstrip("-").replace("-", "_")
        found[key] = Unknown(word.unknown, place) if word.unknown else Known(value, place, word.text)
    return found


def probe(cursor: Cursor) -> Probe | None:
    """A probe, or None where there is none."""
    if not cursor:
        return None
    return Probe(
        place=cursor.place,
        period=cursor["periodSeconds"].integer(),
        timeout=cursor["timeoutSeconds"].integer(),
        failures=cursor["failureThreshold"].integer(),
        initial_delay=cursor["initialDelaySeconds"].integer(),
    )


def _pre_stop(cursor: Cursor) -> Maybe[int]:
    if not cursor:
        return None
    if cursor["sleep"]:
        return cursor.at("sleep", "seconds").integer()
    words = " ".join(item.raw() for item in cursor.at("exec", "command").items())
    match = SLEEP.search(words)
    return Known(int(match[1][:6]) if match else 0, cursor.place, words)
