"""The collectives of a compiled program, and the bytes that each of them moves.

Read from the text of the optimised HLO, which every version of JAX can print; no structured form of
it is public. Bytes are those of the collective's result on one device: the whole array for an
all-gather, the reduced one for an all-reduce.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)

_BYTES = {
    "pred": 1,
    "s8": 1,
    "u8": 1,
    "s16": 2,
    "u16": 2,
    "f16": 2,
    "bf16": 2,
    "s32": 4,
    "u32": 4,
    "f32": 4,
    "s64": 8,
    "u64": 8,
    "f64": 8,
    "c64": 8,
    "c128": 16,
}

_OPERATION = re.compile(
    r"=\s*(?P<shape>\([^=]*?\)|\S+)\s+(?P<name>" + "|".join(COLLECTIVES) + r")(?P<half>-start)?\("
)
_ARRAY = re.compile(r"\b(?P<dtype>[a-z][a-z0-9]*)\[(?P<dims>[\d,]*)\]")
_POSITION = re.compile(r"/\*index=\d+\*/")  # which the printer puts between a tuple's elements
# What a TPU's asynchronous collective waits on: a scalar in the memory of its semaphores.
_SEMAPHORE = re.compile(r",\s*[us]32\[\]\{:S\(2\)\}")

# Of a module's first line; an argument is one array, as JAX flattens what it passes.
_HEADER = re.compile(
    r"^HloModule .*?input_output_alias=\{(?P<aliases>.*?) \}, .*?"
    r"entry_computation_layout=\{\((?P<arguments>.*?)\)->"
)
_ALIASED = re.compile(r":\s*\((\d+), \{\}")


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of a program: operation, result shape in HLO's notation, bytes."""

    operation: str
    shape: str
    bytes: int


def collectives(text: str) -> list[Collective]:
    """Return the collectives of a module's text, in order; ValueError for an unknown dtype."""
    return list(_collectives(text))


def _collectives(text: str) -> Iterator[Collective]:
    for line in text.splitlines():
        match = _OPERATION.search(_POSITION.sub("", line))
        if match is None:
            continue
        arrays = list(_ARRAY.finditer(_SEMAPHORE.sub("", match["shape"])))
        if match["half"] and match["name"] != "all-reduce":
            # The start of an asynchronous collective carries its operands first, then its results.
            arrays = arrays[len(arrays) // 2 :]
        shape = ", ".join(array[0] for array in arrays)
        yield Collective(match["name"], shape, sum(map(_bytes, arrays)))


def aliased(text: str) -> int:
    """Return the bytes of a module's arguments whose memory its results reuse, on one device."""
    header = _HEADER.search(text)
    if header is None:
        return 0
    arrays = list(_ARRAY.finditer(header["arguments"]))
    taken = {int(number) for number in _ALIASED.findall(header["aliases"])}
    return sum(_bytes(arrays[number]) for number in taken)


def _bytes(array: re.Match[str]) -> int:
    if array["dtype"] not in _BYTES:
        raise ValueError(f"the size of HLO's dtype {array['dtype']!r} is not known: add it")
    size = _BYTES[array["dtype"]]
    for dimension in filter(None, array["dims"].split(",")):
        size *= int(dimension)
    return size
