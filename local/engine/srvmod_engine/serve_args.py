"""The command line of `vllm serve` 0.33.0, rebuilt from the option table in data/.

An option that vLLM doesn't know is an error here too, so that a removed or misspelt option of the deployment is
found on one machine. Values are checked as vLLM's parser checks them; cross-field rules are in `config`.
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

_TABLE: Final = "vllm-0.33.0-serve-args.json"
_DECIMAL: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_OPTION: Final = re.compile(r"^(--[A-Za-z0-9_-]+)((?:\.[^=]*)?)(=.*)?$", re.DOTALL)


def human_readable_int(text: str) -> int:
    """`8k` is 8000 and `8K` is 8192, as vLLM reads them; a fraction is allowed only with a decimal suffix."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])?", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number (8192, 8k and 8K are understood)")
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    if "." in number:
        raise argparse.ArgumentTypeError(f"{text!r}: a fraction needs one of the suffixes k, m, g, t")
    return int(number) * _BINARY.get(suffix or "", 1)


def _human_readable_int_or_auto(text: str) -> int:
    # vLLM writes "as long as fits" as -1.
    return -1 if text in {"auto", "-1"} else human_readable_int(text)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None


_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    "int": int,
    "float": float,
    "text": str,
    "loads": _json,
    "human_readable_int": human_readable_int,
    "human_readable_int_or_auto": _human_readable_int_or_auto,
}


class _Switch(argparse.Action):
    """`--enable-x/--disable-x`: vLLM takes no value for these, so `--enable-x=False` is refused."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **kwargs)
        long = [option for option in option_strings if option.startswith("--")]
        # The first long spelling is the one that sets the field named by dest; the other one clears it.
        self._clears = set(long[1:])

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, option_string not in self._clears)


@cache
def option_table() -> tuple[dict[str, Any], ...]:
    """The options as the pinned release's own parser has them (the file names its source)."""
    text = resources.files("srvmod_engine").joinpath("data", _TABLE).read_text(encoding="utf-8")
    return tuple(json.loads(text)["options"])


def _normalise(argv: Sequence[str]) -> list[str]:
    """Accept underscores, `-O2`, and `--json-option.key value`, as vLLM does."""
    out: list[str] = []
    for argument in argv:
        if match := _OPTION.match(argument):
            name, _path, value = match.groups()
            # `--compilation-config.mode=3` only changes how vLLM runs a real model; the option itself is checked.
            out.append(name.replace("_", "-") + (value or ""))
        elif re.fullmatch(r"-O[0-3]", argument):
            out.append(f"--optimization-level={argument[2:]}")
        elif re.match(r"-cc\.", argument):
            out.append(re.sub(r"^-cc\.[^=]*", "-cc", argument))
        else:
            out.append(argument)
    return out


@cache
def build_parser(prog: str = "srvmod-engine serve") -> argparse.ArgumentParser:
    """A parser that knows exactly the options of `vllm serve` 0.33.0."""
    parser = argparse.ArgumentParser(prog=prog, allow_abbrev=False, description=__doc__)
    parser.add_argument("model_tag", nargs="?", default=None, help="folder with the weights")
    for option in option_table():
        common: dict[str, Any] = {"dest": option["dest"], "default": option.get("default")}
        if option["kind"] == "switch":
            parser.add_argument(*option["flags"], action=_Switch, **common)
        elif option["kind"] == "true":
            parser.add_argument(*option["flags"], action="store_true", dest=option["dest"])
        else:
            kind = _TYPES[option.get("type", "text")]
            choices = option.get("choices")
            if choices is not None and kind is int:
                choices = [int(choice) for choice in choices]
            action = "append" if option["kind"] == "append" else "store"
            parser.add_argument(
                *option["flags"], action=action, type=kind, nargs=option.get("nargs"), choices=choices, **common
            )
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the words after `serve`. Exits with 2 and vLLM-like words on an unknown option or a bad value."""
    return build_parser().parse_args(_normalise(argv))
