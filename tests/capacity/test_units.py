"""Times carry their unit in their type: a number that is named ms or seconds can't be passed as the other.

NewType makes a type checker refuse the mix; the checker itself runs in CI over everything, and on deliberate mixes in
tests/acceptance/test_units.py. Here: that the room's names and types agree, so that the checker has what it needs.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

import srvmod.capacity
from srvmod.contract import Milliseconds, Seconds, to_milliseconds, to_seconds

PLAIN = {"StepParameters.host_ms"}
"""Factors of the fit, which are all plain numbers; host_ms_of has the unit."""


def dataclasses_of_the_room() -> Iterator[type[Any]]:
    for module in pkgutil.iter_modules(srvmod.capacity.__path__):
        loaded = importlib.import_module(f"srvmod.capacity.{module.name}")
        for _, found in inspect.getmembers(loaded, inspect.isclass):
            if dataclasses.is_dataclass(found) and found.__module__ == loaded.__name__:
                yield found


def unit_of(hint: Any) -> Any:
    """The unit in a hint, also of an optional value."""
    return next((one for one in (hint, *get_args(hint)) if one in (Milliseconds, Seconds)), None)


@pytest.mark.parametrize("kind", list(dataclasses_of_the_room()), ids=lambda kind: kind.__name__)
def test_fields_named_by_a_unit_have_its_type(kind: type[Any]) -> None:
    for name, hint in get_type_hints(kind).items():
        if name.endswith("_ms") and f"{kind.__name__}.{name}" not in PLAIN:
            assert unit_of(hint) is Milliseconds, f"{kind.__name__}.{name}: {hint}"


def test_conversions_are_typed_both_ways() -> None:
    assert get_type_hints(to_milliseconds) == {"seconds": Seconds, "return": Milliseconds}
    assert get_type_hints(to_seconds) == {"milliseconds": Milliseconds, "return": Seconds}
    assert to_milliseconds(to_seconds(Milliseconds(30.0))) == pytest.approx(30.0)
