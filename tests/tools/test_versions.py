"""Reading versions: from what real tools print, from Go's build information, and comparing them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvmod.tools import golang, probe
from srvmod.tools.catalogue import TOOLS_BY_NAME, VERSION
from srvmod.tools.errors import ToolError

# What each tool prints, with {} where its version stands.
SAID = {
    "etcd": "etcd Version: {}\nGit SHA: Not provided\nGo Version: go1.26.8\nGo OS/Arch: linux/amd64",
    "kube-apiserver": "Kubernetes v{}",
    "kube-scheduler": "Kubernetes v{}",
    "kube-controller-manager": "Kubernetes v{}",
    "kubelet": "Kubernetes v{}",
    "containerd": "containerd github.com/containerd/containerd/v2 v{} 1c4457e00facac03ce1d75f7b6777a7a851e5c41",
    "containerd-shim-runc-v2": "containerd-shim-runc-v2:\n  Version:  v{}\n  Revision: \n  Go version: go1.26.8",
    "ctr": "ctr github.com/containerd/containerd/v2 v{}",
    "runc": "runc version {}\nspec: 1.3.0\ngo: go1.26.8\nlibseccomp: 2.5.4",
    "cni": "CNI bridge plugin v{}\nCNI protocol versions supported: 0.1.0, 0.2.0, 1.1.0",
    "pulumi": "v{}",
    "envoy-gateway": "ENVOY_GATEWAY_VERSION: v{}\nENVOY_PROXY_VERSION: distroless-v1.39.1\nGATEWAYAPI_VERSION: v1.6.1",
    "kwok": "kwok version v{} go1.26.8 (linux/amd64)",
    "coredns": "CoreDNS-{}\nlinux/amd64, go1.26.8, ",
    "crane": "v{}",
    "pretend-gpu-plugin": "{}",
    "helm": "v{}",
    "kube-score": "kube-score version: {}, commit: N/A, built: N/A",
    "actionlint": "v{}\ninstalled by building from source\nbuilt with go1.26.8 compiler for linux/amd64",
}
number = st.integers(0, 999)
# A deadline would measure how busy the machine is.
UNHURRIED = settings(deadline=None, max_examples=40)
versions = st.builds(
    lambda parts, pre: ".".join(map(str, parts)) + pre,
    st.tuples(number, number, number),
    st.sampled_from(["", "-rc.1", "-alpha.0", "-20260115033456-f47bc2d6f199"]),
)


def test_every_tool_with_a_pattern_has_an_example() -> None:
    assert set(SAID) == {tool.name for tool in TOOLS_BY_NAME.values() if tool.pattern is not None}


@pytest.mark.parametrize("name", SAID)
@UNHURRIED
@given(version=versions)
def test_version_is_read_from_what_the_tool_prints(name: str, version: str) -> None:
    assert probe.version_in(SAID[name].format(version), TOOLS_BY_NAME[name].pattern or "") == version


@UNHURRIED
@given(version=versions, build=st.from_regex(r"\+[0-9A-Za-z.-]{1,20}", fullmatch=True))
def test_build_metadata_is_no_part_of_the_version(version: str, build: str) -> None:
    assert probe.version_in(f"v{version}{build}", VERSION) == version


@UNHURRIED
@given(st.text(alphabet="abc v.-+\n"))
def test_text_without_a_version_gives_none(text: str) -> None:
    assert probe.version_in(text, VERSION) is None


@UNHURRIED
@given(a=st.tuples(number, number, number), b=st.tuples(number, number, number))
def test_numbers_order_like_numbers(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    shown = [".".join(map(str, parts)) for parts in (a, b)]
    assert (golang.numbers(shown[0]) < golang.numbers(f"v{shown[1]}-rc1")) == (a < b)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def binary(information: str, before: bytes = b"") -> bytes:
    """A file as Go lays it out: header aligned to 16, then two strings with their lengths in front."""
    framed = b"<" * 16 + information.encode() + b">" * 16
    header = b"\xff Go buildinf:" + bytes([8, 2]) + bytes(16)
    body = varint(8) + b"go1.26.8" + varint(len(framed)) + framed
    return before + bytes(-len(before) % 16) + header + body + b"\0" * 8


@UNHURRIED
@given(
    version=versions,
    before=st.binary(max_size=200).filter(lambda data: b"\xff Go" not in data),
    filler=st.integers(0, 400),
)
def test_build_information_is_read_wherever_it_lies(
    tmp_path_factory: pytest.TempPathFactory, version: str, before: bytes, filler: int
) -> None:
    path = tmp_path_factory.mktemp("x") / "program"
    text = f"path\ta.example/one/cmd\nmod\ta.example/one\tv{version}\th1:x=\n" + "dep\tother\tv0.0.1\n" * filler
    path.write_bytes(binary(text, before))
    assert probe.module_version(probe.build_information(path), "a.example/one") == version
    assert probe.module_version(probe.build_information(path), "a.example/on") is None


def test_magic_that_is_not_aligned_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(binary("mod\tm\tv1.0.0\t", b"x\xff Go buildinf:" + b"\x08\x02" + b"\x01" * 60))
    assert probe.module_version(probe.build_information(path), "m") == "1.0.0"


@pytest.mark.parametrize("cut", [1, 20, 32, 33, 42, 43])
def test_cut_off_or_foreign_file_has_no_information(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "program"
    path.write_bytes(binary("mod\tm\tv1.0.0\t")[:cut])
    assert probe.build_information(path) == ""
    path.write_bytes(b"")
    assert probe.build_information(path) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#!/bin/sh\necho broken; exit 3\n", "exit code 3, broken"),
        ("#!/bin/sh\necho hello\n", "found no version in hello"),
        ("#!/bin/sh\n", "found no version in no text"),
    ],
)
def test_error_holds_command_expectation_and_finding(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "kubelet"
    path.write_text(text)
    path.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        probe.version_of(TOOLS_BY_NAME["kubelet"], path, tmp_path)
    assert found in caught.value.problem
    assert f"expected kubelet {TOOLS_BY_NAME['kubelet'].version} from `{path} --version`" in caught.value.problem
