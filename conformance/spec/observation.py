"""The observation of one process in a cell.

The worker writes it as plain JSON (`recording`, `describing`); here it is read into frozen records,
so that judging needs neither JAX nor the process. The JSON itself goes into the results file.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTSIDE = "outside any step"  # the name of what a probe raised where no step was under way

BETWEEN = "between the steps"  # the name of what a probe's warnings outside its steps belong to

RETURNED = "returned"
RAISED = "raised"

REMEMBERED_BYTES = 1024  # of an array whose text is kept
MESSAGE_KEPT = 4_000  # characters of an exception's message in a step's text, which is judged
MESSAGE_SHOWN = 200  # characters of such a text where a reader wants one line


def shortened(text: str, most: int = MESSAGE_SHOWN) -> str:
    """Return the beginning of a text that is too long to show."""
    return text if len(text) <= most else text[:most] + "…"


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception: its type and all base types by name, the phase, the message, JAX's frames."""

    type: str
    bases: tuple[str, ...]
    phase: str
    message: str
    frames: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = " ".join(self.message.split())
        return f"raised {self.type} (phase {self.phase}): {shortened(text, MESSAGE_KEPT)}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of a returned value.

    `shape` is the array's own shape; `local` is this process's part of it: the box that its
    addressable shards tile (the whole array if it is fully addressable or replicated), or None if
    they tile no box or the array is too large to record.
    """

    path: str
    type: str
    shape: tuple[int, ...]
    dtype: str
    local: NDArray[Any] | None
    weak_type: bool | None = None
    committed: bool | None = None
    sharding: Mapping[str, Any] | None = None
    text: str = ""

    def __str__(self) -> str:
        if self.local is None:
            return self.text or f"{self.type} {self.dtype}{list(self.shape)} without local values"
        small = self.local.nbytes <= REMEMBERED_BYTES
        text = _remembered if small else _text_of
        return f"{self.dtype}{list(self.shape)} {text(self.local.tobytes(), *_kind(self.local))}"


@dataclass(frozen=True, slots=True)
class Step:
    """One named action of a probe, and how it ended.

    `tree` is the structure of what it returned, in JAX's notation; None if it was not recorded.
    """

    name: str
    leaves: tuple[Leaf, ...] = ()
    raised: Raised | None = None
    warnings: tuple[Mapping[str, Any], ...] = ()
    logs: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    tree: str | None = None

    def __str__(self) -> str:
        if self.raised is not None:
            return str(self.raised)
        return "returned " + (", ".join(map(str, self.leaves)) or "nothing")


@dataclass(frozen=True, slots=True)
class Witness:
    """The proof of which implementation ran, for one call of a map.

    The wrapper's kind; its outputs' shardings, `traced` for a tracer, a type's name for other
    values; the mapping primitives that it has traced so far; whether the call raised.
    """

    wrapper: str
    outputs: tuple[str, ...]
    traced: tuple[str, ...] = ()
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that one process reports of one case.

    `compiled`, if programs were compiled for other devices, says for which, how many, which failed,
    and which would place a result elsewhere. `between` holds the warnings and log records of the
    probe outside its steps; None if they were not recorded.
    """

    process: int
    jax: str
    processes: int
    steps: tuple[Step, ...]
    witness: tuple[Witness, ...]
    compiled: Mapping[str, Any] | None = None
    between: Step | None = None

    @property
    def clean(self) -> bool:
        """Return whether every step returned a value, so that the cluster may be used again."""
        return all(step.raised is None for step in self.steps)


def parse(record: Mapping[str, Any]) -> Observation:
    """Parse a worker's JSON; KeyError or TypeError if it is not an observation."""
    return Observation(
        process=record["process"],
        jax=record["jax"],
        processes=record["processes"],
        steps=tuple(_step(s) for s in record["steps"]),
        witness=tuple(
            Witness(w["wrapper"], tuple(w["outputs"]), tuple(w.get("traced", ())), w["raised"])
            for w in record["witness"]
        ),
        compiled=record.get("compiled"),
        between=_between(record.get("between")),
    )


def _between(record: Mapping[str, Any] | None) -> Step | None:
    if record is None:
        return None
    return Step(BETWEEN, warnings=tuple(record["warnings"]), logs=tuple(record["logs"]))


def _step(record: Mapping[str, Any]) -> Step:
    value, exception = record.get("value"), record.get("exception")
    return Step(
        name=record["name"],
        leaves=tuple(_leaf(leaf) for leaf in value["leaves"]) if value else (),
        raised=Raised(
            exception["type"],
            tuple(exception["bases"]),
            exception["phase"],
            exception["message"],
            tuple(exception["frames"]),
        )
        if exception
        else None,
        warnings=tuple(record.get("warnings", ())),
        logs=tuple(record.get("logs", ())),
        extra=record.get("extra", {}),
        tree=value.get("tree") if value else None,
    )


def _leaf(record: Mapping[str, Any]) -> Leaf:
    values = record.get("values")
    return Leaf(
        path=record["path"],
        type=record["type"],
        shape=tuple(record["shape"]),
        dtype=record["dtype"],
        local=None if values is None else from_json(values, record["dtype"], record["local_shape"]),
        weak_type=record.get("weak_type"),
        committed=record.get("committed"),
        sharding=record.get("sharding"),
        text=record.get("text", ""),
    )


def _kind(array: NDArray[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    return array.dtype, array.shape


def _text_of(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Return the values in one line, shortened in the middle if there are many."""
    array = np.frombuffer(data, dtype).reshape(shape)
    return " ".join(np.array2string(array, threshold=12, edgeitems=2, separator=", ").split())


# Of the values of a run's thousands of cells most are the same few: rows, doubled rows.
_remembered = functools.lru_cache(maxsize=4096)(_text_of)


def to_json(array: NDArray[Any]) -> list[Any]:
    """Return the array's elements in row order; non-finite floats as strings, which JSON lacks."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        return [[_number(float(v.real)), _number(float(v.imag))] for v in flat]
    if flat.dtype.kind in "iub":
        return list(flat.tolist())
    return [_number(float(v)) for v in flat]


def from_json(values: list[Any], dtype: str, shape: list[int]) -> NDArray[Any]:
    """Return the array that `to_json` wrote; float64 for a dtype that NumPy does not know.

    ValueError if the number of values is not that of the shape.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(np.float64)
    if kind.kind == "c":
        flat = np.array([complex(float(a), float(b)) for a, b in values], dtype=kind)
    elif kind.kind in "iub":
        flat = np.array(values, dtype=kind)
    else:  # NumPy's floats, and those of ml_dtypes such as bfloat16, whose kind is "V"
        flat = np.array([float(v) for v in values]).astype(kind)
    return flat.reshape(tuple(shape))


def _number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
