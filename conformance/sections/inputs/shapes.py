"""The shape of what each process brings: accepted, refused, or taken for something else in silence.

Each row stitches local data and passes the array through a shard_map that leaves it as it is. A
control ran before, so that a refusal is known to come from the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import processes
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.judging.columns import Columns, of_shard_map
from conformance.judging.expectation import (
    Expectation,
    Model,
    OfEachStep,
    difference,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.sections.inputs import (
    CONTROL,
    FIX,
    GLOBAL_SHAPE,
    TAKEN_AS_THEY_ARE,
    WIDTH,
    block_map,
    control,
    sharding_of,
)

# Facts that several rows vary.
OTHER_SPEC = "inputs.stitch.other-spec"
WRONG_SHAPE = "inputs.shape.wrong"

ABOUT_SHAPE = "shape|divisible|dimension|rank"


@dataclass(frozen=True, slots=True)
class Shapes:
    """Local data, which this process must then hold as they are, the spec, and `global_shape`.

    `fact` is the clause's, where it is not its own.
    """

    key: str
    text: str
    spec: tuple[str | None, ...]
    data: Model
    global_shape: Callable[[Place], tuple[int, ...] | None]
    fact: str = ""


def _columns(place: Place) -> Any:
    return np.ascontiguousarray(place.rows(WIDTH).T)


ACCEPTED: Mapping[str, Shapes] = table(
    Shapes(
        "stitch.global-shape",
        "with the `global_shape` that follows from the data",
        ("i",),
        lambda place: place.rows(WIDTH),
        lambda place: (place.topology.devices, WIDTH),
        fact="inputs.stitch.rows",
    ),
    Shapes(
        "stitch.second-dimension",
        "along the second dimension",
        (None, "i"),
        _columns,
        lambda place: None,
        fact=OTHER_SPEC,
    ),
    Shapes(
        "stitch.replicated",
        "replicated: every process brings all of it",
        (),
        lambda place: place.all_rows(WIDTH),
        lambda place: (place.topology.devices, WIDTH),
        fact=OTHER_SPEC,
    ),
)

REFUSED: Mapping[str, Shapes] = table(
    Shapes(
        "shape.not-divisible",
        "of one row more than the devices share evenly",
        ("i",),
        lambda place: np.ones((place.topology.devices_per_process + 1, WIDTH), np.float32),
        lambda place: None,
        fact=WRONG_SHAPE,
    ),
    Shapes(
        "shape.fewer-than-global-shape",
        "of half the rows that `global_shape` asks of this process",
        ("i",),
        lambda place: place.rows(WIDTH),
        lambda place: (place.topology.devices * 2, WIDTH),
        fact=WRONG_SHAPE,
    ),
    Shapes(
        "shape.more-than-global-shape",
        "of twice the rows that `global_shape` asks of this process",
        ("i",),
        lambda place: np.concatenate([place.rows(WIDTH), place.rows(WIDTH)]),
        lambda place: (place.topology.devices, WIDTH),
    ),
    Shapes(
        "shape.other-width",
        "of other width than `global_shape` says, in a dimension that is not sharded",
        ("i",),
        lambda place: place.rows(WIDTH + 1),
        lambda place: (place.topology.devices, WIDTH),
        fact=WRONG_SHAPE,
    ),
    Shapes(
        "shape.other-rank",
        "with one dimension less than the spec names",
        ("i", None),
        lambda place: place.rows(),
        lambda place: None,
        fact=WRONG_SHAPE,
    ),
)


def uneven(place: Place) -> Any:
    """As many rows per device as the process's number, plus one."""
    first = 100 * place.process
    count = place.topology.devices_per_process * (place.process + 1)
    return np.arange(first, first + count * WIDTH, dtype=np.float32).reshape(count, WIDTH)


def _all_uneven_rows(place: Place) -> int:
    return sum(len(uneven(Place(place.topology, p))) for p in range(place.topology.processes))


UNEVEN: Mapping[str, Shapes] = table(
    Shapes(
        "uneven.inferred",
        "of more rows in each process than in the one before, without `global_shape`",
        ("i",),
        uneven,
        lambda place: None,
    ),
    Shapes(
        "uneven.global-shape",
        "of more rows in each process than in the one before, with the sum as `global_shape`",
        ("i",),
        uneven,
        lambda place: (_all_uneven_rows(place), WIDTH),
    ),
)


def accepted(shapes: Shapes) -> Expectation:
    """The data, as they were."""
    return returns(shapes.data, text=f"the data, {shapes.text}")


def refused(shapes: Shapes) -> Expectation:
    """An error about the shape, before anything is computed."""
    return raises(ValueError, ABOUT_SHAPE, otherwise=shapes.data)


def refused_or_joined(shapes: Shapes) -> Expectation:
    """An error about the shape, or one array of all processes' rows."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return re.search(ABOUT_SHAPE, step.raised.message) is not None, str(step)
        wanted = [_all_uneven_rows(place), WIDTH]
        problem = difference(step.leaves[0], shapes.data(place))
        shape = step.extra[GLOBAL_SHAPE]
        return problem is None and shape == wanted, f"global shape {shape} of {wanted}; {step}"

    return OfEachStep("raises an error about the shape, or returns all processes' rows", of)


def in_both_calls(expected: Expectation) -> Columns:
    """Of shard_map: `expected` of two calls, after the control."""
    return of_shard_map(
        steps(control=CONTROL, first_call=expected, second_call=expected), TAKEN_AS_THEY_ARE
    )


TITLE = "`make_array_from_process_local_data` of data {shapes.text}"


@family(
    "inputs.{shapes}",
    shapes=ACCEPTED,
    claim=FIX,
    title=TITLE,
    fact=lambda shapes: shapes.fact,
    topologies=ONE_AND_SEVERAL,
    expect=lambda shapes: in_both_calls(accepted(shapes)),
)
@family(
    "inputs.{shapes}",
    shapes=REFUSED,
    claim="migrate-pmap.local-shape-must-match",
    title=TITLE,
    fact=lambda shapes: shapes.fact,
    topologies=ONE_AND_SEVERAL,
    expect=lambda shapes: in_both_calls(refused(shapes)),
)
@family(
    "inputs.{shapes}",
    shapes=UNEVEN,
    claim="pmap-silence.uneven-process-rows",
    title=TITLE,
    fact=lambda shapes: shapes.fact,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=lambda shapes: in_both_calls(refused_or_joined(shapes)),
)
def stitch(impl: Any, cluster: Any, shapes: Shapes) -> None:
    """Local data are stitched and passed through a shard_map that leaves them as they are."""
    sharding = sharding_of(impl.mesh(), *shapes.spec)
    function = block_map(impl, sharding, lambda x: x * 1)
    data, shape = shapes.data(cluster), shapes.global_shape(cluster)

    def run() -> Any:
        return function(jax.make_array_from_process_local_data(sharding, data, shape))

    control(impl, cluster)
    for name in ("first call", "second call"):
        result = cluster.step(name, run)
        if result is not None:
            cluster.note(GLOBAL_SHAPE, list(result.shape))
