"""The island check: the last thing that runs in an engine's container before the engine itself.

    python3 -I island_check.py --gpus=4 --model=H100 --nvlinks=18 -- vllm serve ...

It becomes the command behind `--` only when the GPUs that this container got are as many as the engine needs, lie on
one NUMA node and are joined by NVLink. In every other case, also when something can't be read, it ends with a message
on standard error and as the container's termination message: fail closed (clauses MC-HW-01 and INV-SRVMOD-03).

It runs inside the engine's container since only there are an engine's GPUs the ones that are seen: nvidia-smi (NVML)
lists the devices that the container may open. /proc/driver/nvidia isn't asked, as it shows all GPUs of the machine to
containers that get theirs by CDI. The file is mounted into an image that isn't ours, hence the standard library only.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NoReturn

ISLAND = "INV-SRVMOD-03"
HARDWARE = "MC-HW-01"
REFUSED = 78
"""Exit code of a failed check: EX_CONFIG of sysexits.h, which neither vLLM nor a signal gives."""
PRETENDED = "SRVMOD_PRETEND_ROOT"
"""Set by the device plugin of pretended nodes: the folder of a pretended machine with its own sys/ and nvidia-smi."""
TERMINATION_LOG = Path("/dev/termination-log")
MESSAGE_BYTES = 4096
"""What the kubelet takes of a termination message."""
ANSWER_SECONDS = 60.0
"""nvidia-smi answers within seconds; one that hangs does so on a broken GPU."""
ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
QUERY = ("index", "pci.bus_id", "name", "mig.mode.current")
NEW_POD = "then delete this pod: restarts keep its GPUs"
SICK_NODE = "cordon the node, look for Xid errors in its kernel log and replace it; " + NEW_POD


@dataclass(frozen=True)
class Required:
    """What the engine needs: `gpus` of a model whose name holds `model`, each pair joined by `nvlinks` links."""

    gpus: int
    model: str
    nvlinks: int


@dataclass(frozen=True)
class Gpu:
    """A GPU as NVML names it; `address` as in sysfs, such as 0000:53:00.0."""

    index: int
    address: str
    model: str
    mig: str


@dataclass(frozen=True)
class Problem:
    """Why the engine must not start."""

    clause: str
    found: str
    required: str
    fix: str

    def __str__(self) -> str:
        return f"{self.clause}: found {self.found}; required: {self.required}; what to do: {self.fix}"


class CheckError(Exception):
    """Something couldn't be established, which is as bad as being wrong."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """The answer to `nvidia-smi --query-gpu=<QUERY> --format=csv,noheader`. Raises CheckError."""
    gpus: list[Gpu] = []
    for line in filter(str.strip, text.splitlines()):
        row = [cell.strip() for cell in line.split(",")]
        place = ADDRESS.fullmatch(row[1].lower()) if len(row) == len(QUERY) else None
        if place is None or not re.fullmatch(r"[0-9]{1,4}", row[0]):
            raise CheckError(_unreadable("nvidia-smi --query-gpu", repr(line[:200]), ", ".join(QUERY)))
        # NVML writes the PCI domain with eight digits, sysfs with four.
        gpus.append(Gpu(int(row[0]), f"{int(place[1], 16):04x}:{place[2]}", row[2], row[3]))
    if len({gpu.index for gpu in gpus}) < len(gpus) or len({gpu.address for gpu in gpus}) < len(gpus):
        raise CheckError(_unreadable("nvidia-smi --query-gpu", repr(text[:200]), "each GPU once"))
    return tuple(gpus)


def parse_topology(text: str) -> dict[tuple[int, int], str]:
    """The matrix of `nvidia-smi topo -m`: (GPU, GPU) to how they are connected, both ways. Raises CheckError.

    Its header names GPUs and network cards, then "CPU Affinity" and others; each row has as many connections.
    """
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).split() for line in text.splitlines()]
    header = next((words for words in lines if len(words) > 1 and words[0] == "GPU0" and words[1] != "X"), None)
    columns: list[str] = []
    for word in header or ():
        if word == "CPU":
            break
        columns.append(word)
    links: dict[tuple[int, int], str] = {}
    for words in lines:
        row = re.fullmatch(r"GPU([0-9]{1,4})", words[0]) if words and words is not header else None
        if row is None:
            continue
        if len(words) <= len(columns):
            raise CheckError(_unreadable("nvidia-smi topo -m", " ".join(words)[:200], f"{len(columns)} connections"))
        for column, connection in zip(columns, words[1:], strict=False):
            other = re.fullmatch(r"GPU([0-9]{1,4})", column)
            if other is not None:
                links[int(row[1]), int(other[1])] = connection
    if not links:
        raise CheckError(_unreadable("nvidia-smi topo -m", repr(text[:200]), "a matrix with a column GPU0"))
    return links


def numa_node(root: Path, address: str) -> int:
    """The NUMA node of a PCI device in the machine below `root`; -1 when the kernel doesn't know. Raises CheckError."""
    file = root / "sys/bus/pci/devices" / address / "numa_node"
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckError(_unreadable(str(file), str(error), "the GPU's NUMA node")) from None
    if not re.fullmatch(r"-1|[0-9]{1,4}", text):
        raise CheckError(_unreadable(str(file), repr(text[:80]), "a NUMA node's number"))
    return int(text)


def judge(
    required: Required, gpus: Sequence[Gpu], nodes: Mapping[str, int], links: Mapping[tuple[int, int], str]
) -> list[Problem]:
    """Everything that is wrong. `nodes` maps addresses to NUMA nodes; one that is missing is reported elsewhere."""
    return [
        *_wrong_number(required, gpus),
        *_wrong_kind(required, gpus),
        *_wrong_nodes(gpus, nodes),
        *_wrong_links(required, gpus, links),
    ]


def _wrong_number(required: Required, gpus: Sequence[Gpu]) -> list[Problem]:
    if len(gpus) == required.gpus:
        return []
    fix = f"set nvidia.com/gpu: {required.gpus} in the container's limits and don't run it privileged; {NEW_POD}"
    return [Problem(HARDWARE, f"{len(gpus)} GPUs ({_names(gpus)})", f"exactly {required.gpus}", fix)]


def _wrong_kind(required: Required, gpus: Sequence[Gpu]) -> list[Problem]:
    problems = []
    if other := [gpu for gpu in gpus if required.model not in gpu.model.split()]:
        models = ", ".join(sorted({gpu.model for gpu in other}))
        fix = "the pool's instance type has to be p5.48xlarge; run the engine on its nodes"
        problems.append(Problem(HARDWARE, f"{models} ({_names(other)})", required.model, fix))
    if split := [gpu for gpu in gpus if gpu.mig.strip("[]") not in {"Disabled", "N/A"}]:
        fix = f"switch MIG off on the node (nvidia-smi -mig 0); the device plugin's MIG_STRATEGY is none; {NEW_POD}"
        problems.append(Problem(ISLAND, f"MIG mode {split[0].mig} ({_names(split)})", "whole GPUs", fix))
    return problems


def _wrong_nodes(gpus: Sequence[Gpu], nodes: Mapping[str, int]) -> list[Problem]:
    problems = []
    if unknown := [gpu for gpu in gpus if nodes.get(gpu.address) == -1]:
        fix = "check the instance type (p5.48xlarge) and that the kernel wasn't started with numa=off; " + SICK_NODE
        problems.append(Problem(ISLAND, f"no NUMA node for {_names(unknown)}", "a known NUMA node for each", fix))
    known = sorted({nodes[gpu.address] for gpu in gpus if nodes.get(gpu.address, -1) >= 0})
    if len(known) > 1:
        places = " and ".join(
            f"NUMA node {node} ({_names([gpu for gpu in gpus if nodes.get(gpu.address) == node])})" for node in known
        )
        fix = (
            "the node's kubelet needs topologyManagerPolicy single-numa-node with scope pod, the pod Guaranteed QoS "
            f"with whole CPUs, and the pool no pods with other numbers of GPUs; {NEW_POD}"
        )
        problems.append(Problem(ISLAND, f"GPUs on {places}", "all GPUs on one NUMA node", fix))
    return problems


def _wrong_links(required: Required, gpus: Sequence[Gpu], links: Mapping[tuple[int, int], str]) -> list[Problem]:
    wrong = []
    for one, other in combinations(sorted(gpu.index for gpu in gpus), 2):
        there, back = links.get((one, other), "unknown"), links.get((other, one), "unknown")
        if min(_nvlinks(there), _nvlinks(back)) < required.nvlinks:
            wrong.append(f"GPU{one}-GPU{other} {there if there == back else f'{there}/{back}'}")
    if not wrong:
        return []
    fix = f"nvidia-fabricmanager has to run on the node and `nvidia-smi nvlink --status` to show all links; {SICK_NODE}"
    return [Problem(ISLAND, ", ".join(wrong), f"NV{required.nvlinks} between all GPUs (NVLink)", fix)]


def _nvlinks(connection: str) -> int:
    """Bonded NVLinks of a connection; 0 for PCIe and for whatever else isn't NVLink."""
    found = re.fullmatch(r"NV([0-9]{1,3})", connection)
    return int(found[1]) if found else 0


def _names(gpus: Sequence[Gpu]) -> str:
    return ", ".join(f"GPU{gpu.index} {gpu.address}" for gpu in gpus) or "none"


def _unreadable(what: str, found: str, required: str) -> Problem:
    return Problem(ISLAND, f"{what}: {found}", required, SICK_NODE)


def ask(program: str, *arguments: str) -> str:
    """What nvidia-smi answers. Raises CheckError when it can't be run, fails or hangs."""
    command = " ".join(["nvidia-smi", *arguments])
    try:
        answer = subprocess.run(
            [program, *arguments], capture_output=True, text=True, errors="replace", timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        fix = f"NVIDIA_DRIVER_CAPABILITIES has to include utility, and the pod to request nvidia.com/gpu; {SICK_NODE}"
        raise CheckError(Problem(ISLAND, f"{command}: {error}", "its answer", fix)) from None
    if "No devices were found" in answer.stdout:
        return ""
    if answer.returncode:
        said = (answer.stdout + answer.stderr).strip()[:400]
        raise CheckError(_unreadable(command, f"exit {answer.returncode}: {said}", "its answer"))
    return answer.stdout


def check(required: Required, root: Path, program: str) -> tuple[str, list[Problem]]:
    """What was found, in words, and everything that is wrong with it."""
    nodes: dict[str, int] = {}
    problems: list[Problem] = []
    try:
        gpus = parse_gpus(ask(program, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"))
        links = parse_topology(ask(program, "topo", "-m")) if len(gpus) > 1 else {}
    except CheckError as error:
        return "nothing that could be judged", [error.problem]
    for gpu in gpus:
        try:
            nodes[gpu.address] = numa_node(root, gpu.address)
        except CheckError as error:
            problems.append(error.problem)
    found = ", ".join(f"GPU{gpu.index} {gpu.address} {gpu.model} NUMA {nodes.get(gpu.address, '?')}" for gpu in gpus)
    return found or "no GPU", [*problems, *judge(required, gpus, nodes, links)]


def refuse(found: str, problems: Sequence[Problem], log: Path) -> NoReturn:
    """Say why on standard error and in the termination message, and end."""
    message = "\n".join(["IslandCheckFailed: this engine must not start", *map(str, problems), f"found: {found}"])
    print(message, file=sys.stderr, flush=True)
    try:
        # The kubelet has made the file; elsewhere there is none, and none is left behind.
        with log.open("r+b") as file:
            file.write(message.encode()[:MESSAGE_BYTES])
    except OSError as error:
        print(f"{log}: {error.strerror}; only this log has the message above", file=sys.stderr)
    sys.exit(REFUSED)


def machine(env: Mapping[str, str], *, allow_pretended: bool) -> tuple[Path, str]:
    """Root of the machine's file tree and the nvidia-smi to ask. Raises CheckError for what mustn't be trusted."""
    if "CUDA_VISIBLE_DEVICES" in env:
        found, fix = "CUDA_VISIBLE_DEVICES in the environment", "remove it: the kubelet gives an engine its GPUs"
        raise CheckError(Problem(ISLAND, found, "the GPUs that are checked to be those that are used", fix))
    pretended = env.get(PRETENDED)
    if pretended is None:
        return Path("/"), "nvidia-smi"
    if not allow_pretended:
        fix = f"remove {PRETENDED}; only the local stack runs on pretended nodes"
        raise CheckError(Problem(HARDWARE, f"{PRETENDED}={pretended}, a pretended machine", "a real one", fix))
    return Path(pretended), str(Path(pretended, "usr/bin/nvidia-smi"))


def main(arguments: Sequence[str], env: Mapping[str, str], log: Path = TERMINATION_LOG) -> NoReturn:
    """The command. Becomes the engine, or exits with REFUSED; 2 on a command line that it doesn't know."""
    parser = argparse.ArgumentParser(prog="island_check", allow_abbrev=False)
    parser.add_argument("--gpus", type=int, required=True, help="how many GPUs the engine needs")
    parser.add_argument("--model", required=True, help="word of the GPUs' name, such as H100")
    parser.add_argument("--nvlinks", type=int, required=True, help="NVLinks between each two of them")
    parser.add_argument("--allow-pretended", action="store_true", help="also run on a pretended machine")
    parser.add_argument("command", nargs="+", help="the engine's command, after --")
    given = parser.parse_args(arguments)
    required = Required(given.gpus, given.model, given.nvlinks)
    try:
        root, program = machine(env, allow_pretended=given.allow_pretended)
    except CheckError as error:
        refuse("nothing was judged", [error.problem], log)
    found, problems = check(required, root, program)
    if problems:
        refuse(found, problems, log)
    where = f" (PRETENDED machine in {root})" if PRETENDED in env else ""
    print(f"island check passed{where}: {found}; NV{required.nvlinks} between all", file=sys.stderr, flush=True)
    os.execvp(given.command[0], given.command)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
