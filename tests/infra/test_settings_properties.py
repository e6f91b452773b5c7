"""Whatever a file holds, it gives settings or a SettingsError that can be printed, and quickly."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srvmod.infra.settings import SettingsError, load, load_stack_file
from tests.infra.bad_configs.base import GOOD, changed

SLOW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.just(10**30)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=10), inner, max_size=4)),
    max_leaves=15,
)
PATHS = st.sampled_from(
    [f"{section}.{key}" for section, keys in GOOD.items() for key in keys]
    + [*GOOD, "slo", "slo.itlP95Ms", "network.existing", "pool.reservations", "tags", "charts.keda", "images"]
)


def refusal(read: Callable[[], object]) -> SettingsError | None:
    """The error with which something is refused; any other error goes on and fails the test."""
    try:
        read()
    except SettingsError as error:
        return error
    return None


def refused_or_loaded(raw: dict[str, Any]) -> None:
    error = refusal(lambda: load(raw, stack="case"))
    if error is not None:
        assert error.problems
        assert all(len(line) < 2_000 for line in str(error).splitlines())


@SLOW
@given(st.dictionaries(st.text(max_size=12) | st.sampled_from(sorted(GOOD)), VALUES, max_size=6))
def test_any_mapping(raw: dict[str, Any]) -> None:
    refused_or_loaded(raw)


@SLOW
@given(st.dictionaries(PATHS, VALUES, min_size=1, max_size=4))
def test_any_values_in_place_of_good_ones(changes: dict[str, Any]) -> None:
    whole = {path: value for path, value in changes.items() if "." not in path}
    parts = {path: value for path, value in changes.items() if path.partition(".")[0] not in whole}
    refused_or_loaded(changed({**whole, **parts}))


@SLOW
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_any_file(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "Pulumi.case.yaml"
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    file.write_bytes(b"config:\n  srvmod:aws: " + data)
    error = refusal(lambda: load_stack_file(file))
    assert error is None or str(error)


def test_aliases_of_aliases_end_soon(tmp_path: Path) -> None:
    """Nine levels of nine aliases each would be 387 million values."""
    lines = ["x0: &x0 [a, b, c, d, e, f, g, h, i]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 9)]
    file = tmp_path / "Pulumi.case.yaml"
    file.write_text("\n".join(lines) + "\nconfig:\n  srvmod:tags: *x8\n  srvmod:other: *x8\n")
    before = time.perf_counter()
    error = refusal(lambda: load_stack_file(file))
    assert error is not None
    assert len(str(error)) < 20_000
    assert time.perf_counter() - before < 5
