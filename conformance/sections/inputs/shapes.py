"""The shape of each process's data: accepted, refused, or silently taken for another shape.

Each row joins local data and passes the array through a shard_map that returns it unchanged. A
control runs before, so that a refusal is known to come from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.inputs import (
    CONTROL,
    FIX,
    TAKEN_AS_THEY_ARE,
    WIDTH,
    Shape,
    ShapeOf,
    Taken,
    all_of,
    block_map,
    control,
    refuses,
    sharding_of,
)
from conformance.spec.arrays import returns_array
from conformance.spec.clause import devices, processes
from conformance.spec.columns import of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.expectation import steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

# Facts that several rows vary.
OTHER_SPEC = "inputs.stitch.other-spec"
WRONG_SHAPE = "inputs.shape.wrong"


def inferred(place: Place) -> None:
    """No `global_shape` is given."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Local data, which this process must then hold as they are, the spec, and `global_shape`.

    `shape` is that of the array. `fact` is the clause's, where it is not its own.
    """

    key: str
    text: str
    spec: tuple[str | None, ...]
    data: Model
    global_shape: Callable[[Place], Shape | None]
    shape: ShapeOf
    fact: str = ""


@described("this process's rows")
def own_rows(place: Place) -> Any:
    return place.rows(WIDTH)


@described("this process's rows, as columns")
def own_columns(place: Place) -> Any:
    return np.ascontiguousarray(place.rows(WIDTH).T)


@described("all rows")
def every_row(place: Place) -> Any:
    return place.all_rows(WIDTH)


ACCEPTED: Mapping[str, Shapes] = table(
    Shapes(
        "stitch.global-shape",
        "with the `global_shape` that follows from the data",
        ("i",),
        own_rows,
        all_of(WIDTH),
        all_of(WIDTH),
        fact="inputs.stitch.rows",
    ),
    Shapes(
        "stitch.second-dimension",
        "along the second dimension",
        (None, "i"),
        own_columns,
        inferred,
        lambda place: (WIDTH, place.topology.devices),
        fact=OTHER_SPEC,
    ),
    Shapes(
        "stitch.replicated",
        "that is replicated: every process passes all of it",
        (),
        every_row,
        all_of(WIDTH),
        all_of(WIDTH),
        fact=OTHER_SPEC,
    ),
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """Local data that do not fit, `global_shape`, and the message (a pattern) that says so.

    `taken` is the shape of what JAX might make of them instead, each process keeping `kept`.
    """

    key: str
    text: str
    spec: tuple[str | None, ...]
    data: Model
    global_shape: Callable[[Place], Shape | None]
    message: Callable[[Place], str]
    taken: Taken
    phase: str | None = "arguments"
    fact: str = ""


def unlike_global_shape(data: Model, asked: ShapeOf, dimension: int) -> Callable[[Place], str]:
    """The message about data that differ from `global_shape` in one dimension."""

    def message(place: Place) -> str:
        given, wanted = data(place).shape, asked(place)
        if place.topology.processes == 1:
            asked_for = rf"global_shape=\({wanted[0]}, {wanted[1]}\)"
            return rf"{asked_for} and local_data\.shape=\({given[0]}, {given[1]}\)"
        elements = f"the process data has {given[dimension]} elements"
        return rf"match either global or process shape\. In dimension {dimension}, {elements}"

    return message


def not_shared_evenly(rows: Callable[[Place], int]) -> Callable[[Place], str]:
    """The message about an array whose rows the devices cannot share evenly."""

    def message(place: Place) -> str:
        devices, count = place.topology.devices, rows(place)
        newer = f"partitioned {devices} times, but the dimension size is {count} "
        return f"{newer}|should be divisible by {devices}, but it is equal to {count} "

    return message


def rank_too_low(place: Place) -> str:
    """Return the message about data with one dimension too few; one process gets it early."""
    if place.topology.processes == 1:
        return "only valid for values of rank at least 2, but was applied to a value of rank 1"
    return r"in_specs entry which is too long to be compatible.* has rank 1 \(and 1 < 2\)"


def as_they_are(data: Model) -> Taken:
    """An array of the data of all processes, as they are."""

    def shape(place: Place) -> Shape:
        first, *row = data(place).shape
        return (first * place.topology.processes, *row)

    return Taken("an array of these data, as they are", data, shape)


@described("as many rows as this process has devices, and one")
def one_row_more(place: Place) -> Any:
    return np.ones((place.topology.devices_per_process + 1, WIDTH), np.float32)


@described("two rows for each of this process's devices, unlike those of all other processes")
def twice_as_many(place: Place) -> Any:
    return np.concatenate([place.rows(WIDTH), place.rows(WIDTH) + 100])


@described("this process's rows, with an element too many")
def wider(place: Place) -> Any:
    return place.rows(WIDTH + 1)


@described("this process's rows, of no dimension")
def without_width(place: Place) -> Any:
    return place.rows()


def twice_all(place: Place) -> Shape:
    """The shape of an array with two rows per device."""
    return (place.topology.devices * 2, WIDTH)


REFUSED: Mapping[str, Wrong] = table(
    Wrong(
        "shape.not-divisible",
        "of one row more than the devices can share equally",
        ("i",),
        one_row_more,
        inferred,
        not_shared_evenly(
            lambda place: (place.topology.devices_per_process + 1) * place.topology.processes
        ),
        as_they_are(one_row_more),
        fact=WRONG_SHAPE,
    ),
    Wrong(
        "shape.fewer-than-global-shape",
        "of half the rows that `global_shape` asks of this process",
        ("i",),
        own_rows,
        twice_all,
        unlike_global_shape(own_rows, twice_all, 0),
        as_they_are(own_rows),
        fact=WRONG_SHAPE,
    ),
    Wrong(
        "shape.more-than-global-shape",
        "of twice the rows that `global_shape` asks of this process",
        ("i",),
        twice_as_many,
        all_of(WIDTH),
        unlike_global_shape(twice_as_many, all_of(WIDTH), 0),
        Taken(
            "this process's part of its own data, which are taken for the whole",
            lambda place: place.mine(twice_as_many(place)),
            all_of(WIDTH),
        ),
    ),
    Wrong(
        "shape.other-width",
        "of another width than `global_shape` has, in a dimension that is not sharded",
        ("i",),
        wider,
        all_of(WIDTH),
        unlike_global_shape(wider, all_of(WIDTH), 1),
        as_they_are(wider),
        fact=WRONG_SHAPE,
    ),
    Wrong(
        "shape.other-rank",
        "with fewer dimensions than the spec names",
        ("i", None),
        without_width,
        inferred,
        rank_too_low,
        as_they_are(without_width),
        phase=None,  # one process gets it from device_put, several from the mapped function
        fact=WRONG_SHAPE,
    ),
)


def uneven(place: Place) -> Any:
    """Return data with as many rows per device as the process's index, plus one."""
    first = 100 * place.process
    count = place.topology.devices_per_process * (place.process + 1)
    return np.arange(first, first + count * WIDTH, dtype=np.float32).reshape(count, WIDTH)


def _all_uneven_rows(place: Place) -> int:
    return sum(len(uneven(Place(place.topology, p))) for p in range(place.topology.processes))


# An even number of processes cannot share this sum evenly.
TOO_UNEVEN = not_shared_evenly(_all_uneven_rows)
OWN_IDEA = Taken(
    "this process's rows, in an array of a shape that it inferred from these alone",
    uneven,
    lambda place: (len(uneven(place)) * place.topology.processes, WIDTH),
)

UNEVEN: Mapping[str, Wrong] = table(
    Wrong(
        "uneven.inferred",
        "with more rows in each process than in the previous one, without `global_shape`",
        ("i",),
        uneven,
        inferred,
        TOO_UNEVEN,
        OWN_IDEA,
    ),
    Wrong(
        "uneven.global-shape",
        "with more rows in each process than in the previous one, and their sum as `global_shape`",
        ("i",),
        uneven,
        lambda place: (_all_uneven_rows(place), WIDTH),
        TOO_UNEVEN,
        OWN_IDEA,
    ),
)


def accepted(shapes: Shapes) -> Expectation:
    """The data, as they were."""
    return in_both_calls(returns_array(shapes.data, shapes.shape, text=f"the data, {shapes.text}"))


def refused(shapes: Wrong) -> Expectation:
    """An error that names what does not fit, before anything is computed."""
    return in_both_calls(
        refuses("ValueError", shapes.message, phase=shapes.phase, taken=shapes.taken)
    )


def in_both_calls(expected: Expectation) -> Expectation:
    """`expected` of two calls, after the control."""
    return steps(control=CONTROL, first_call=expected, second_call=expected)


TITLE = "`make_array_from_process_local_data` of data {shapes.text}"


@family(
    "inputs.{shapes}",
    shapes=ACCEPTED,
    claim=FIX,
    title=TITLE,
    topologies=ONE_AND_SEVERAL,
    needs=devices(2),
    expect=lambda shapes: of_shard_map(accepted(shapes), TAKEN_AS_THEY_ARE),
)
@family(
    "inputs.{shapes}",
    shapes=REFUSED,
    claim="migrate-pmap.local-shape-must-match",
    title=TITLE,
    topologies=ONE_AND_SEVERAL,
    needs=devices(2),
    expect=lambda shapes: of_shard_map(refused(shapes), TAKEN_AS_THEY_ARE),
)
@family(
    "inputs.{shapes}",
    shapes=UNEVEN,
    claim="pmap-silence.uneven-process-rows",
    title=TITLE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=lambda shapes: of_shard_map(refused(shapes), TAKEN_AS_THEY_ARE),
)
def stitch(impl: Implementation, cluster: Cluster, shapes: Shapes | Wrong) -> None:
    """Local data are stitched and passed through a shard_map that leaves them as they are."""
    sharding = sharding_of(impl.mesh(), *shapes.spec)
    function = block_map(impl, sharding, lambda x: x * 1)
    data, shape = shapes.data(cluster), shapes.global_shape(cluster)

    def run() -> Any:
        return function(jax.make_array_from_process_local_data(sharding, data, shape))

    control(impl, cluster)
    cluster.twice(run)
