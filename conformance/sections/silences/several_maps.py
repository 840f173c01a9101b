"""Several mapped functions, or one beside other arrays, in one jit or one grad.

Legacy pmap ran each as its own program, over its own devices. New pmap and shard_map compile all
into one program, which runs on one set of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation, Mapped

Rows = NDArray[Any]

CLAIM = "pmap-silence.several-maps-in-one-program"
COUNT, HALF = 8, 4  # devices
WIDTH = 3  # of a row
LEFT_OUT = "multi_controller.map tests several processes"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of `maps`, each over so many devices from the first; its arguments are `rows`.

    `run(maps)` is a function that is kept and called again. Of an array for each of `rows`, of
    which a user puts the second one with `put`, it gives what `model(*rows)` says.
    """

    key: str
    text: str
    run: Callable[[Sequence[Mapped]], Callable[..., Any]]
    model: Callable[..., Any]
    maps: tuple[slice, ...]
    rows: tuple[int, ...]
    put: Callable[[Implementation, Sequence[jax.Device], Rows], Any] = lambda impl, all, x: x
    fixes: str | None = None


ALL, FIRST, SECOND = slice(COUNT), slice(HALF), slice(HALF, COUNT)


def _doubled_sums(a: Rows, b: Rows) -> Any:
    return (a * 2).sum(), (b * 2).sum()


def _both_doubled(a: Rows, b: Rows) -> Any:
    return a * 2, b * 2


def _twos(a: Rows, b: Rows) -> Any:
    return np.full_like(a, 2), np.full_like(b, 2)


def _sums(maps: Sequence[Mapped]) -> Any:
    first, last = maps[0], maps[-1]
    return jax.jit(lambda x, y: (first(x).sum(), last(y).sum()))


def _apart(maps: Sequence[Mapped]) -> Any:
    sums = [jax.jit(lambda x, mapped=mapped: mapped(x).sum()) for mapped in maps]
    return lambda *given: tuple(one(x) for one, x in zip(sums, given, strict=True))


def _both(maps: Sequence[Mapped]) -> Any:
    first, last = maps
    return jax.jit(lambda x, y: (first(x), last(y)))


def _derived(maps: Sequence[Mapped]) -> Any:
    first, last = maps
    return jax.grad(lambda x, y: first(x).sum() + last(y).sum(), (0, 1))


def _fed(maps: Sequence[Mapped]) -> Any:
    first, last = maps
    return jax.jit(lambda x: last(first(x)[:HALF]))


def _with_total(maps: Sequence[Mapped]) -> Any:
    (only,) = maps
    return jax.jit(lambda x, y: only(x).sum() + y.sum())


def _product_derived(maps: Sequence[Mapped]) -> Any:
    (only,) = maps
    return jax.grad(lambda x, y: (only(x) * y).sum(), (0, 1))


def _total(a: Rows, b: Rows) -> Any:
    return (a * 2).sum() + b.sum()


def _over_all(impl: Implementation, all: Sequence[jax.Device], x: Rows) -> Any:
    return jax.device_put(x, impl.sharding())


def _replicated(impl: Implementation, all: Sequence[jax.Device], x: Rows) -> Any:
    return jax.device_put(x, jax.sharding.NamedSharding(jax.sharding.Mesh(all, ("a",)), P()))


def _by_two_axes(impl: Implementation, all: Sequence[jax.Device], x: Rows) -> Any:
    mesh = jax.sharding.Mesh(np.array(all).reshape(HALF, -1), ("a", "b"))
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, P("a")))


def _anew(impl: Implementation, all: Sequence[jax.Device], x: Rows) -> Any:
    return jnp.asarray(x)


def _on(index: int) -> Callable[..., Any]:
    return lambda impl, all, x: jax.device_put(x, all[index])


PROGRAMS: Mapping[str, Program] = table(
    Program(
        "two-sizes",
        "jit of one over eight devices and one over four",
        _sums,
        _doubled_sums,
        (ALL, FIRST),
        (COUNT, HALF),
    ),
    Program(
        "halves",
        "jit of one over four devices and one over the other four",
        _both,
        _both_doubled,
        (FIRST, SECOND),
        (HALF, HALF),
    ),
    Program(
        "two-sizes-grad",
        "grad of one over eight devices and one over four",
        _derived,
        _twos,
        (ALL, FIRST),
        (COUNT, HALF),
    ),
    Program(
        "fed-to-smaller",
        "jit of one over eight devices, half of whose rows are passed to one over four",
        _fed,
        lambda a: a[:HALF] * 4,
        (ALL, FIRST),
        (COUNT,),
    ),
    Program(
        "apart",
        "a jit of one over eight devices beside a jit of one over four",
        _apart,
        _doubled_sums,
        (ALL, FIRST),
        (COUNT, HALF),
        fixes="silences.several-maps.two-sizes",
    ),
    Program(
        "with-array-over-all",
        "jit of one and an array that is sharded over the same devices",
        _with_total,
        _total,
        (ALL,),
        (COUNT, COUNT),
        _over_all,
    ),
    Program(
        "with-array-replicated",
        "jit of one and an array that is replicated over the same devices",
        _with_total,
        _total,
        (ALL,),
        (COUNT, COUNT),
        _replicated,
        fixes="silences.several-maps.with-array-over-all",
    ),
    Program(
        "with-array-by-two-axes",
        "jit of one and an array that is sharded over the same devices with a mesh of two axes",
        _with_total,
        _total,
        (ALL,),
        (COUNT, COUNT),
        _by_two_axes,
    ),
    Program(
        "with-new-array",
        "jit of one over four devices and an uncommitted array",
        _with_total,
        _total,
        (FIRST,),
        (HALF, COUNT),
        _anew,
    ),
    Program(
        "with-array-on-device-0",
        "jit of one and an array committed to device 0",
        _with_total,
        _total,
        (ALL,),
        (COUNT, COUNT),
        _on(0),
    ),
    Program(
        "with-array-on-device-3",
        "jit of one and an array committed to device 3",
        _with_total,
        _total,
        (ALL,),
        (COUNT, COUNT),
        _on(3),
    ),
    Program(
        "grad-with-array-over-all",
        "grad of one times an array that is sharded over the same devices",
        _product_derived,
        lambda a, b: (2 * b, 2 * a),
        (ALL,),
        (COUNT, COUNT),
        _over_all,
    ),
)


def arguments(place: Place, program: Program) -> list[Rows]:
    """The rows of each argument."""
    rows = place.all_rows(WIDTH)
    return [rows[:count] + 10 * turn for turn, count in enumerate(program.rows)]


@family(
    "silences.several-maps.{program}",
    program=PROGRAMS,
    claim=CLAIM,
    title="Several mapped functions or arrays in one program: {program.text}.",
    fact=lambda program: f"silences.several-maps{'' if len(program.maps) > 1 else '.with-array'}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda program: everywhere(
        twice(
            returns(
                lambda place: program.model(*arguments(place, program)),
                text=f"what NumPy gives for {program.text}",
            )
        )
    ),
)
def several(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Maps and arrays in one program."""
    maps = [impl.map(double(), devices=cluster.devices[which]) for which in program.maps]
    first, *others = arguments(cluster, program)
    arrays = [first, *(program.put(impl, cluster.devices, one) for one in others)]
    cluster.twice(program.run(maps), *arrays)
