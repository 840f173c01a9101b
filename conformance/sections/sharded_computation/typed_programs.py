"""Programs of the page on parallel programming, and how their results are to lie.

Each runs on a mesh of four by two devices. Looked at are its values, the type that JAX gives the
result, and which elements each device holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.sections.sharded_computation import P
from conformance.spec.arrays import returns_array
from conformance.spec.expectation import every, noted, twice
from conformance.spec.expected import Expectation
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster

ONE_TABLE = "the documented example has one process with eight devices"

GRID = {"X": 4, "Y": 2}
LINE = {"A": 8}

Entry = str | tuple[str, ...] | None
Axes = tuple[Entry, ...]
Say = Callable[[Any], None]


def mesh_of(sizes: Mapping[str, int], *, explicit: bool = True) -> jax.sharding.Mesh:
    """A mesh of these sizes over the devices in their order."""
    types = jax.sharding.AxisType
    grid = np.array(jax.devices()).reshape(tuple(sizes.values()))
    kinds = (types.Explicit if explicit else types.Auto,) * len(sizes)
    return jax.sharding.Mesh(grid, tuple(sizes), axis_types=kinds)


def put(values: Any, *axes: Entry) -> Any:
    """Return the values as an array with this sharding on the mesh in context."""
    return jax.device_put(values, P(*axes))


def numbers(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


X = numbers(8, 4)
LEFT, RIGHT = numbers(8, 4), numbers(4, 16)
COLUMN, ROW = numbers(4, 1), numbers(1, 8)
SQUARE = numbers(4, 4)


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the page, with NumPy's values for it.

    `axes` are the result's sharding on a mesh of these `sizes`, and `typed` the part of it in its
    type, if not all; `inside` are the types that the program printed while it was traced.
    """

    key: str
    claim: str
    text: str
    run: Callable[[Say], Any]
    values: NDArray[Any]
    axes: Axes
    typed: Axes | None = None
    inside: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = tuple(GRID.items())
    explicit: bool = True

    @property
    def type(self) -> str:
        """Return the type as `jax.typeof` prints it."""
        return _typed(self.values, self.axes if self.typed is None else self.typed)

    @property
    def pieces(self) -> list[list[float]]:
        """First element and shape of what each device of the mesh holds, in the mesh's order."""
        sizes = dict(self.sizes)
        found = []
        for where in np.ndindex(*sizes.values()):
            at = dict(zip(sizes, where, strict=True))
            piece = self.values
            for dimension, entry in enumerate(self.axes):
                for axis in _names(entry):
                    piece = np.split(piece, sizes[axis], dimension)[at[axis]]
            found.append([float(piece.flat[0]), *piece.shape])
        return found


def _names(entry: Entry) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else entry


def _typed(values: NDArray[Any], axes: Axes) -> str:
    def of_entry(size: int, entry: Entry) -> str:
        names = _names(entry)
        joined = f"({','.join(names)})" if len(names) > 1 else "".join(names)
        return f"{size}@{joined}" if joined else f"{size}"

    sizes = (of_entry(size, entry) for size, entry in zip(values.shape, axes, strict=True))
    return f"{values.dtype}[{','.join(sizes)}]"


def as_numpy(program: Program) -> Expectation:
    @described("NumPy's values")
    def values(place: Place) -> Any:
        return program.values

    return every(
        twice(returns_array(values)),
        noted("type", f"its type is {program.type}", lambda _, seen: seen == program.type),
        noted("pieces", "each device holds its piece", lambda _, seen: seen == program.pieces),
        noted("inside", "as it was traced", lambda _, seen: seen == list(program.inside)),
    )


def run_on_mesh(cluster: Cluster, program: Program) -> None:
    """The two calls of a program, and what its result is."""
    for name in ("first call", "second call"):
        said: list[str] = []
        with jax.set_mesh(mesh_of(GRID, explicit=program.explicit)):
            array = cluster.step(name, program.run, lambda seen, s=said: s.append(str(seen)))
            if array is None:
                continue
            shards = {shard.device.id: shard.data for shard in array.addressable_shards}
            pieces = [shards.get(device.id) for device in cluster.devices]
            cluster.note("type", str(jax.typeof(array)))
        lie = [None if one is None else [float(np.ravel(one)[0]), *one.shape] for one in pieces]
        cluster.note("pieces", lie)
        cluster.note("inside", said)
