"""The island check on machines as a p5.48xlarge is, and on wrong ones; the real script, as its own process too."""

import ast
import contextlib
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvmod.contract import P5_48XLARGE, Clause
from srvmod.infra.serving import island_check as check

REQUIRED = check.Required(gpus=4, model="H100", nvlinks=18)
ADDRESSES = ("53", "64", "75", "86", "97", "a8", "b9", "ca")
"""PCI buses of a p5's GPUs; the first four hang on NUMA node 0 (Karpenter's table of instance types' GPUs)."""
ISLANDS = ((0, 1, 2, 3), (4, 5, 6, 7))


@dataclass
class Machine:
    """What a container sees: `gpus` are the machine's numbers of the GPUs it got."""

    gpus: tuple[int, ...] = (0, 1, 2, 3)
    model: str = "NVIDIA H100 80GB HBM3"
    mig: str = "Disabled"
    link: str = "NV18"
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    numa: dict[int, str] = field(default_factory=dict)
    network_cards: int = 0

    def numa_of(self, gpu: int) -> str:
        return self.numa.get(gpu, str(gpu // 4))

    def query(self) -> str:
        return "".join(
            f"{i}, 00000000:{ADDRESSES[gpu].upper()}:00.0, {self.model}, {self.mig}\n"
            for i, gpu in enumerate(self.gpus)
        )

    def topology(self) -> str:
        """Tab-separated and with an underlined header, as nvidia-smi prints it."""
        gpus = [f"GPU{index}" for index in range(len(self.gpus))]
        cards = [f"NIC{index}" for index in range(self.network_cards)]
        header = "\t\x1b[4m" + "\t".join([*gpus, *cards, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"
        lines = [header]
        for one in range(len(gpus)):
            cells = [" X " if one == other else self.links.get((one, other), self.link) for other in range(len(gpus))]
            lines.append("\t".join([gpus[one], *cells, *["SYS"] * len(cards), "0-47,96-143", "0", "N/A"]))
        lines += ["\t".join([card, *["SYS"] * len(gpus), *[" X "] * len(cards), "", "", ""]) for card in cards]
        legend = ["", "Legend:", "", "  X    = Self", "  NV#  = Connection traversing a bonded set of # NVLinks"]
        return "\n".join([*lines, *legend, *(f"  {card}: mlx5_{i}" for i, card in enumerate(cards))]) + "\n"

    def lay(self, root: Path) -> Path:
        """Writes the whole machine's PCI tree, and an nvidia-smi that answers for this container."""
        for gpu, bus in enumerate(ADDRESSES):
            device = root / f"sys/bus/pci/devices/0000:{bus}:00.0"
            device.mkdir(parents=True)
            (device / "numa_node").write_text(f"{self.numa_of(gpu)}\n")
        program = root / "usr/bin/nvidia-smi"
        program.parent.mkdir(parents=True)
        program.write_text(
            f"#!{sys.executable} -IS\nimport sys\n"
            f"sys.stdout.write({self.topology()!r} if sys.argv[1:] == ['topo', '-m'] else {self.query()!r})\n"
        )
        program.chmod(0o755)
        return root


def problems(machine: Machine, tmp_path: Path) -> list[check.Problem]:
    root = machine.lay(tmp_path)
    return check.check(REQUIRED, root, str(root / "usr/bin/nvidia-smi"))[1]


@pytest.mark.parametrize("gpus", ISLANDS)
def test_an_island_of_a_p5_passes(gpus: tuple[int, ...], tmp_path: Path) -> None:
    assert problems(Machine(gpus), tmp_path) == []


def test_network_cards_in_the_matrix_are_no_gpus(tmp_path: Path) -> None:
    assert problems(Machine(network_cards=8), tmp_path) == []


WRONG = {
    "both islands": (Machine((2, 3, 4, 5)), Clause.INV_SRVMOD_03, "NUMA node 0 (GPU0 0000:75:00.0, GPU1 0000:86:00.0)"),
    "three": (Machine((0, 1, 2)), Clause.MC_HW_01, "3 GPUs"),
    "one": (Machine((0,)), Clause.MC_HW_01, "1 GPUs"),
    "no numa node": (Machine(numa={1: "-1"}), Clause.INV_SRVMOD_03, "no NUMA node for GPU1 0000:64:00.0"),
    "pcie only": (Machine(link="SYS"), Clause.INV_SRVMOD_03, "GPU0-GPU1 SYS"),
    "links down": (Machine(link="NV12"), Clause.INV_SRVMOD_03, "GPU2-GPU3 NV12"),
    "one pair": (Machine(links={(1, 3): "PHB", (3, 1): "PHB"}), Clause.INV_SRVMOD_03, "GPU1-GPU3 PHB;"),
    "one way": (Machine(links={(3, 1): "SYS"}), Clause.INV_SRVMOD_03, "GPU1-GPU3 NV18/SYS"),
    "mig": (Machine(mig="Enabled"), Clause.INV_SRVMOD_03, "MIG mode Enabled"),
    "a100": (Machine(model="NVIDIA A100-SXM4-80GB"), Clause.MC_HW_01, "A100"),
    "garbled numa node": (Machine(numa={2: "zero"}), Clause.INV_SRVMOD_03, "'zero'"),
    "empty numa node": (Machine(numa={2: ""}), Clause.INV_SRVMOD_03, "0000:75:00.0/numa_node: ''"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_machine_is_refused_with_its_clause_and_a_way_on(name: str, tmp_path: Path) -> None:
    machine, clause, words = WRONG[name]
    found = problems(machine, tmp_path)
    assert [problem.clause for problem in found] == [clause.value]
    assert words in str(found[0])
    assert "required: " in str(found[0])
    assert "what to do: " in str(found[0])


def test_several_problems_are_told_at_once(tmp_path: Path) -> None:
    found = problems(Machine((3, 4, 5), mig="Enabled", link="NODE"), tmp_path)
    assert [problem.clause for problem in found] == ["MC-HW-01", "INV-SRVMOD-03", "INV-SRVMOD-03", "INV-SRVMOD-03"]


def test_all_gpus_of_the_machine_are_no_island(tmp_path: Path) -> None:
    """What a privileged container sees."""
    assert [problem.found[:6] for problem in problems(Machine(tuple(range(8))), tmp_path)] == ["8 GPUs", "GPUs o"]


def test_files_that_cant_be_read_are_refused(tmp_path: Path) -> None:
    root = Machine().lay(tmp_path)
    (root / "sys/bus/pci/devices/0000:64:00.0/numa_node").unlink()
    (root / "sys/bus/pci/devices/0000:75:00.0/numa_node").write_bytes(b"\xff\n")
    found = check.check(REQUIRED, root, str(root / "usr/bin/nvidia-smi"))[1]
    assert [("64:00.0" in str(problem), "75:00.0" in str(problem)) for problem in found] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo 'Unable to determine the device handle for GPU0000:53:00.0: Unknown Error'; exit 255",
            "exit 255: Unable",
        ),
        ("exit 0", "0 GPUs"),
        ("echo 'No devices were found'; exit 6", "0 GPUs"),
        ("echo 'no, csv'", "no, csv"),
        ("echo '0, 00000000:53:00.0, H100, Disabled'; echo '1, 00000000:53:00.0, H100, Disabled'", "each GPU once"),
    ],
)
def test_an_nvidia_smi_that_gives_no_answer_is_refused(script: str, words: str, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (problem,) = check.check(REQUIRED, Machine().lay(tmp_path / "m"), str(program))[1]
    assert words in str(problem)


def test_an_nvidia_smi_that_hangs_or_is_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "ANSWER_SECONDS", 0.1)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 5\n")
    program.chmod(0o755)
    for path in (program, tmp_path / "none"):
        (problem,) = check.check(REQUIRED, tmp_path, str(path))[1]
        assert "NVIDIA_DRIVER_CAPABILITIES" in problem.fix


def test_matrix_of_a_real_h100_machine_is_read() -> None:
    """Rows as in github.com/HazyResearch/ThunderKittens/issues/167, whose 192 CPUs are those of a p5."""
    header = f"        {'    '.join(f'GPU{i}' for i in range(8))}    CPU Affinity    NUMA Affinity   GPU NUMA ID"
    rows = []
    for one in range(8):
        cells = "    ".join(" X " if one == other else "NV18" for other in range(8))
        rows.append(f"GPU{one}    {cells}    {'0-47,96-143     0' if one < 4 else '48-95,144-191   1'}      N/A")
    links = check.parse_topology("\n".join([header, *rows]))
    assert {links[one, other] for one in range(8) for other in range(8) if one != other} == {"NV18"}


@pytest.mark.parametrize("text", ["", "Legend:\n", "GPU0\n", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\n"])
def test_a_matrix_that_isnt_one_is_refused(text: str) -> None:
    with pytest.raises(check.CheckError):
        check.parse_topology(text)


WORDS = st.sampled_from(
    ["GPU0", "GPU1", "GPU2", "X", "NV18", "NV", "SYS", "CPU", "\t", "\n", " ", "\x1b[4m", "NIC0", "-"]
)


@given(st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=80))
@settings(max_examples=100, deadline=None)
def test_any_answer_is_read_or_refused(text: str) -> None:
    for parse in (check.parse_topology, check.parse_gpus):
        with contextlib.suppress(check.CheckError):
            parse(text)


@given(
    gpus=st.permutations(range(8)).map(tuple),
    size=st.integers(0, 8),
    links=st.dictionaries(
        st.tuples(st.integers(0, 7), st.integers(0, 7)),
        st.sampled_from(["SYS", "NV4", "NV18", "NODE", "NV", ""]),
        max_size=4,
    ),
    numa=st.dictionaries(st.integers(0, 7), st.sampled_from([-1, 0, 1]), max_size=2),
)
@settings(max_examples=120, deadline=None)
def test_only_islands_pass(
    gpus: tuple[int, ...], size: int, links: dict[tuple[int, int], str], numa: dict[int, int]
) -> None:
    """What passes is four whole GPUs, on one NUMA node, with every link up: judged here by counting."""
    machine = Machine(gpus[:size], links={pair: link or "-" for pair, link in links.items()})
    seen = check.parse_gpus(machine.query())
    matrix = check.parse_topology(machine.topology()) if size > 1 else {}
    nodes = {gpu.address: numa.get(number, number // 4) for gpu, number in zip(seen, machine.gpus, strict=True)}
    passes = not check.judge(REQUIRED, seen, nodes, matrix)
    pairs = [matrix[a, b] for a in range(size) for b in range(size) if a != b]
    places = {nodes[gpu.address] for gpu in seen}
    assert passes == (size == 4 and len(places) == 1 and -1 not in places and set(pairs) == {"NV18"})


def run(root: Path | None, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The script as the container runs it, in front of a program that prints its words."""
    base = {"PATH": f"{root}/usr/bin:/usr/bin:/bin" if root else "/usr/bin:/bin"}
    command = [sys.executable, "-I", str(Path(check.__file__)), "--gpus=4", "--model=H100", "--nvlinks=18", *options]
    return subprocess.run(
        [*command, "--", "printf", "%s|", "serve", "/models/r1", "--port=8000"],
        env={**base, **(env or {})}, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip


def test_the_engine_takes_over_with_its_arguments_intact(tmp_path: Path) -> None:
    root = Machine(ISLANDS[1]).lay(tmp_path)
    result = run(root, "--allow-pretended", env={check.PRETENDED: str(root)})
    assert (result.returncode, result.stdout) == (0, "serve|/models/r1|--port=8000|")
    assert "PRETENDED" in result.stderr


def test_the_engine_never_starts_on_a_wrong_machine(tmp_path: Path) -> None:
    root = Machine((2, 3, 4, 5)).lay(tmp_path)
    result = run(root, "--allow-pretended", env={check.PRETENDED: str(root)})
    assert (result.returncode, result.stdout) == (check.REFUSED, "")
    assert result.stderr.startswith("IslandCheckFailed: ")


@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        ((), {check.PRETENDED: "/somewhere"}, "only the local stack"),
        (("--allow-pretended",), {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, "CUDA_VISIBLE_DEVICES"),
        (("--allow-pretended",), {check.PRETENDED: "/nowhere"}, "/nowhere/usr/bin/nvidia-smi"),
        ((), {}, "nvidia-smi"),
    ],
    ids=["pretended machine", "other GPUs used", "pretended machine is missing", "no nvidia-smi"],
)
def test_what_mustnt_be_trusted_is_refused(options: tuple[str, ...], env: dict[str, str], words: str) -> None:
    result = run(None, *options, env=env)
    assert result.returncode == check.REFUSED
    assert words in result.stderr


def test_unknown_options_start_nothing() -> None:
    result = run(None, "--gpu=4")
    assert (result.returncode, result.stdout) == (2, "")


def test_the_termination_message_fits_and_is_only_written_where_there_is_one(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    problem = check.Problem("INV-SRVMOD-03", "x" * 5000, "y", "z")
    with pytest.raises(SystemExit) as ended:
        check.refuse("found", [problem], log)
    assert ended.value.code == check.REFUSED
    assert not log.exists()
    log.touch()
    with pytest.raises(SystemExit):
        check.refuse("found", [problem], log)
    assert log.stat().st_size == check.MESSAGE_BYTES
    assert log.read_text().startswith("IslandCheckFailed: ")


def test_it_needs_the_standard_library_only_and_speaks_of_the_contracts_clauses() -> None:
    tree = ast.parse(Path(check.__file__).read_text(), feature_version=(3, 10))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert (check.ISLAND, check.HARDWARE) == (Clause.INV_SRVMOD_03, Clause.MC_HW_01)


def test_required_links_add_up_to_the_specifications_bandwidth() -> None:
    """A fourth-generation NVLink carries 50 GB/s, both directions together."""
    assert P5_48XLARGE.gpu.nvlinks * 50 == P5_48XLARGE.gpu.nvlink_gb_per_second
