"""The shape of what each process brings: accepted, refused, or taken for something else in silence.

Each row stitches local data and passes the array through a shard_map that leaves it as it is. A
control ran before, so that a refusal is known to come from the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    difference,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.sections.inputs.stitching import (
    CONTROL,
    EVERYWHERE,
    FIX,
    GLOBAL_SHAPE,
    SEVERAL,
    over,
    shard_map_only,
)

MUST_MATCH = "migrate-pmap.local-shape-must-match"
UNEVEN = "pmap-silence.uneven-process-rows"

ABOUT_SHAPE = "shape|divisible|dimension|rank"


@dataclass(frozen=True, slots=True)
class Shapes:
    """Local data, spec and `global_shape`; `model` is what this process must then hold."""

    name: str
    said: str
    spec: tuple[str | None, ...]
    data: Callable[[Place], Any]
    global_shape: Callable[[Place], tuple[int, ...] | None]
    model: Callable[[Place], Any]
    topologies: tuple[str, ...] = EVERYWHERE


def _columns(place: Place) -> Any:
    return np.ascontiguousarray(place.rows(2).T)


ACCEPTED = (
    Shapes(
        "global-shape",
        "with the `global_shape` that follows from the data",
        ("i",),
        lambda place: place.rows(2),
        lambda place: (place.topology.devices, 2),
        lambda place: place.rows(2),
    ),
    Shapes(
        "second-dimension",
        "along the second dimension",
        (None, "i"),
        _columns,
        lambda place: None,
        _columns,
    ),
    Shapes(
        "replicated",
        "replicated: every process brings all of it",
        (),
        lambda place: place.all_rows(2),
        lambda place: (place.topology.devices, 2),
        lambda place: place.all_rows(2),
    ),
)

REFUSED = (
    Shapes(
        "not-divisible",
        "of one row more than the devices share evenly",
        ("i",),
        lambda place: np.ones((place.topology.devices_per_process + 1, 2), np.float32),
        lambda place: None,
        lambda place: np.ones((place.topology.devices_per_process + 1, 2), np.float32),
    ),
    Shapes(
        "fewer-than-global-shape",
        "of half the rows that `global_shape` asks of this process",
        ("i",),
        lambda place: place.rows(2),
        lambda place: (place.topology.devices * 2, 2),
        lambda place: place.rows(2),
    ),
    Shapes(
        "more-than-global-shape",
        "of twice the rows that `global_shape` asks of this process",
        ("i",),
        lambda place: np.concatenate([place.rows(2), place.rows(2)]),
        lambda place: (place.topology.devices, 2),
        lambda place: np.concatenate([place.rows(2), place.rows(2)]),
    ),
    Shapes(
        "other-width",
        "of other width than `global_shape` says, in a dimension that is not sharded",
        ("i",),
        lambda place: place.rows(3),
        lambda place: (place.topology.devices, 2),
        lambda place: place.rows(3),
    ),
    Shapes(
        "other-rank",
        "with one dimension less than the spec names",
        ("i", None),
        lambda place: place.rows(),
        lambda place: None,
        lambda place: place.rows(),
    ),
)


def uneven(place: Place) -> Any:
    """As many rows per device as the process's number, plus one."""
    first = 100 * place.process
    count = place.topology.devices_per_process * (place.process + 1)
    return np.arange(first, first + count * 2, dtype=np.float32).reshape(count, 2)


def _all_uneven_rows(place: Place) -> int:
    return sum(len(uneven(Place(place.topology, p))) for p in range(place.topology.processes))


NOT_EVEN = (
    Shapes(
        "inferred",
        "of more rows in each process than in the one before, without `global_shape`",
        ("i",),
        uneven,
        lambda place: None,
        uneven,
        SEVERAL,
    ),
    Shapes(
        "global-shape",
        "of more rows in each process than in the one before, with the sum as `global_shape`",
        ("i",),
        uneven,
        lambda place: (_all_uneven_rows(place), 2),
        uneven,
        SEVERAL,
    ),
)

SHAPES = {f"stitch.{s.name}": s for s in ACCEPTED}
SHAPES |= {f"shape.{s.name}": s for s in REFUSED} | {f"uneven.{s.name}": s for s in NOT_EVEN}


def stitch(impl: Any, cluster: Any, shapes: str) -> None:
    """Local data are stitched and passed through a shard_map that leaves them as they are."""
    chosen = SHAPES[shapes]
    sharding = jax.sharding.NamedSharding(impl.mesh(), jax.sharding.PartitionSpec(*chosen.spec))
    function = over(impl, sharding, lambda x: x * 1)
    data, shape = chosen.data(cluster), chosen.global_shape(cluster)

    def run() -> Any:
        return function(jax.make_array_from_process_local_data(sharding, data, shape))

    cluster.step("control", impl.map(lambda x: x * 2), impl.given(cluster.rows(2)))
    for name in ("first call", "second call"):
        result = cluster.step(name, run)
        if result is not None:
            cluster.note(GLOBAL_SHAPE, list(result.shape))


def declare(shapes: Shapes, id: str, claim: str, expected: Expectation) -> None:
    """A clause for one row of the tables above."""
    clause(
        f"inputs.{id}",
        claim=claim,
        needs=processes(2 if shapes.topologies == SEVERAL else 1),
        topologies=shapes.topologies,
        expect=shard_map_only(steps(control=CONTROL, first_call=expected, second_call=expected)),
        parameters={"shapes": id},
        title=f"`make_array_from_process_local_data` of data {shapes.said}",
    )(stitch)


def refused(shapes: Shapes) -> Expectation:
    """An error about the shape, before anything is computed."""
    return raises(ValueError, ABOUT_SHAPE, otherwise=shapes.model)


def refused_or_joined(shapes: Shapes) -> Expectation:
    """An error about the shape, or one array of all processes' rows."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return re.search(ABOUT_SHAPE, step.raised.message) is not None, str(step)
        whole = [_all_uneven_rows(place), 2]
        problem = difference(step.leaves[0], shapes.model(place))
        shape = step.extra[GLOBAL_SHAPE]
        return problem is None and shape == whole, f"global shape {shape} of {whole}; {step}"

    return OfEachStep("raises an error about the shape, or returns all processes' rows", of)


for row in ACCEPTED:
    declare(row, f"stitch.{row.name}", FIX, returns(row.model, text=f"the data, {row.said}"))
for row in REFUSED:
    declare(row, f"shape.{row.name}", MUST_MATCH, refused(row))
for row in NOT_EVEN:
    declare(row, f"uneven.{row.name}", UNEVEN, refused_or_joined(row))
