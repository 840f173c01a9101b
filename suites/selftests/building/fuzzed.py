"""Wrong results files from a seed: records, lines and bytes of a right file, each with one mistake.

What a test says of a case is its seed and number: the same two give the same file.
"""

from __future__ import annotations

import copy
import json
import lzma
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]

DEEP = 100_000  # lists in one another
_HOLE = "@hole@"  # stands for text that json cannot write

# What no record has there, or seldom: values, and texts of JSON that Python cannot write.
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    1e308,
    -1e308,
    5e-324,
    "",
    "x",
    "x" * 100_000,
    "<script>alert(1)</script>\x1b[2J\ud800",
    "../../../../etc/passwd",
    "999999999x999999999",
    "0x0",
    "9" * 5000,
    "1x" + "9" * 5000,
    "conforms",
    "known deviation",
    "crashed",
    "hung",
    "jax==0.9.0",
    [],
    [[]],
    [None],
    ["x", 1],
    {},
    {"": None},
    {"kind": "cell"},
)
TEXTS = (
    "1" + "0" * 400,
    "1e400",
    "-1e999",
    "NaN",
    "-Infinity",
    "[" * DEEP + "]" * DEEP,
    '{"a":' * 600 + "1" + "}" * 600,
    "[" * 300 + "]" * 300,
    '"\\ud800"',
    "01",
    "'x'",
)


def fuzzed(records: Sequence[Record], seed: int, number: int, file: Path) -> Path:
    """Write case `number` of a seed: `file`, compressed where the mistake is one of compression."""
    draw = random.Random(f"{seed} {number}")
    made: Sequence[Callable[[random.Random, Sequence[Record]], bytes]] = (
        *[_value] * 8,
        _key,
        _lines,
        _bytes,
    )
    if draw.random() < 0.1:
        packed = file.with_suffix(".jsonl.xz")
        packed.write_bytes(_packed(draw, records))
        return packed
    file.write_bytes(draw.choice(made)(draw, records))
    return file


def _value(draw: random.Random, records: Sequence[Record]) -> bytes:
    """Another value, or another text, in place of one of a record's."""
    some = copy.deepcopy(list(records))
    at = draw.randrange(len(some))
    parent, key = draw.choice(_places(some[at]))
    if draw.random() < 0.3:
        parent[key] = _HOLE
        text = draw.choice(TEXTS)
    else:
        parent[key], text = copy.deepcopy(draw.choice(VALUES)), ""
    return _text(some).replace(f'"{_HOLE}"'.encode(), text.encode())


def _key(draw: random.Random, records: Sequence[Record]) -> bytes:
    """A key too few, too many or of another name."""
    some = copy.deepcopy(list(records))
    parent, key = draw.choice(
        [(p, k) for p, k in _places(some[draw.randrange(len(some))]) if isinstance(p, dict)]
    )
    value = parent[key]
    if draw.random() < 0.7:
        del parent[key]
    if draw.random() < 0.5:
        parent[f"{key}é"] = value
    return _text(some)


def _lines(draw: random.Random, records: Sequence[Record]) -> bytes:
    """Lines left out, twice, in another order, in other keys' order, or torn."""
    some = list(records)
    match draw.randrange(5):
        case 0:
            del some[draw.randrange(len(some))]
        case 1:
            some.insert(draw.randrange(len(some)), draw.choice(some))
        case 2:
            draw.shuffle(some)
        case 3:
            some = [dict(sorted(one.items())) for one in some]
        case _:
            return _text(some)[: draw.randrange(len(_text(some)))]
    return _text(some)


def _bytes(draw: random.Random, records: Sequence[Record]) -> bytes:
    """A few other bytes somewhere, or nothing but noise."""
    text = bytearray(_text(records))
    if draw.random() < 0.1:
        return draw.randbytes(draw.randrange(2000))
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(text))
        text[at : at + draw.randrange(3)] = draw.choice(
            (b"", b"\n", b"\0", b'"', b"[", b"}", b"\xff", b"9" * 30, draw.randbytes(3))
        )
    return bytes(text)


def _packed(draw: random.Random, records: Sequence[Record]) -> bytes:
    """A compressed file: cut, changed, none at all, or of a wrong file."""
    packed = bytearray(lzma.compress(_text(records), preset=0))
    match draw.randrange(4):
        case 0:
            return bytes(packed[: draw.randrange(len(packed))])
        case 1:
            packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
            return bytes(packed)
        case 2:
            return draw.randbytes(draw.randrange(500))
        case _:
            return lzma.compress(_value(draw, records), preset=0)


def _places(record: Record) -> list[tuple[Any, Any]]:
    """Every place of a value in a record: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    todo: list[Any] = [record]
    while todo:
        parent = todo.pop()
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        for key in keys:
            found.append((parent, key))
            if isinstance(parent[key], dict | list):
                todo.append(parent[key])
    return found


def _text(records: Sequence[Record]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in records).encode()
