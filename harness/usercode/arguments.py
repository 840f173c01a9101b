"""Parse the arguments of a user's function from a command line: dtype and shape."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.commandline.counting import counted

DEVICES = "n"  # in a shape: the number of devices over which the function is mapped
MOST_ELEMENTS = 2**28  # of one argument
MOST_AXES = 32

DTYPES: Mapping[str, str] = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "bf16": "bfloat16",
    "c64": "complex64",
    "bool": "bool",
}
_ARGUMENT = re.compile(r"([a-z]+[0-9]*)\[([^\]]*)\]")
_SIZE = re.compile(rf"{DEVICES}|[0-9]{{1,9}}")

Size = int | str  # a number, or DEVICES
Axis = int | None


class ArgumentsError(ValueError):
    """Invalid arguments or axes; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One array: the name of its dtype, as NumPy writes it, and its shape."""

    dtype: str
    shape: tuple[Size, ...]

    def sizes(self, devices: int) -> tuple[int, ...]:
        """Return the shape for a map over so many devices."""
        return tuple(devices if isinstance(one, str) else one for one in self.shape)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"dtype": self.dtype, "shape": list(self.shape)}


def parse_arguments(text: str) -> tuple[Argument, ...]:
    """Parse `f32[n,128] f32[128,128]`; ArgumentsError names the wrong word."""
    words = text.split()
    if not words:
        raise ArgumentsError("--args is empty: write for example 'f32[n,128] f32[128,128]'")
    return tuple(map(_argument, words))


def _argument(word: str) -> Argument:
    match = _ARGUMENT.fullmatch(word)
    if match is None:
        raise ArgumentsError(
            f"--args {word[:40]!r}: write dtype and shape, such as f32[n,128]; "
            f"{DEVICES} is the number of devices"
        )
    if match[1] not in DTYPES:
        raise ArgumentsError(
            f"--args {word[:40]}: {match[1]} is not a dtype here; use {', '.join(DTYPES)}"
        )
    sizes = [one.strip() for one in match[2].split(",")] if match[2].strip() else []
    if len(sizes) > MOST_AXES or not all(map(_SIZE.fullmatch, sizes)):
        raise ArgumentsError(
            f"--args {word[:40]}: sizes are whole numbers, or {DEVICES} for the number of devices"
        )
    made = Argument(DTYPES[match[1]], tuple(one if one == DEVICES else int(one) for one in sizes))
    if math.prod(made.sizes(1)) > MOST_ELEMENTS:
        raise ArgumentsError(f"--args {word[:40]}: more than {MOST_ELEMENTS} elements")
    return made


def parse_axes(text: str, option: str) -> tuple[Axis, ...]:
    """Parse `0`, `0,None` or `1,0`: an axis, or None, for all arguments or for each.

    ArgumentsError names `option`.
    """
    found: list[Axis] = []
    for word in text.split(","):
        if word.strip() == "None":
            found.append(None)
        elif re.fullmatch(r"[0-9]{1,2}", word.strip()):
            found.append(int(word))
        else:
            raise ArgumentsError(
                f"{option} {text[:40]}: write axes from 0 on, or None, as in 0,None"
            )
    return tuple(found)


def parse_numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse `0` or `0,2`: positions of arguments. ArgumentsError names `option`."""
    if not re.fullmatch(r"\s*[0-9]{1,3}\s*(,\s*[0-9]{1,3}\s*)*", text):
        raise ArgumentsError(f"{option} {text[:40]}: write positions of arguments, as in 0,2")
    return tuple(map(int, text.split(",")))


def check_mapped(
    arguments: Sequence[Argument], axes: Sequence[Axis], devices: int, topology: str
) -> None:
    """Raise ArgumentsError if an argument's mapped axis does not have one row per device."""
    if len(axes) not in (1, len(arguments)):
        raise ArgumentsError(
            f"--in-axes has {len(axes)} axes for {len(arguments)} arguments: give one for each, or "
            "one for all"
        )
    for number, one in enumerate(arguments):
        axis = axes[number if len(axes) > 1 else 0]
        sizes = one.sizes(devices)
        if axis is not None and (axis >= len(sizes) or sizes[axis] != devices):
            has = counted(sizes[axis], "row") if axis < len(sizes) else "no such axis"
            raise ArgumentsError(
                f"--args: argument {number} is mapped over axis {axis}, where it has {has}, and "
                f"{topology} has {counted(devices, 'device')}: write {DEVICES} for their number, "
                "or None in --in-axes"
            )
