"""Wrong JAX that the clauses on inputs must call wrong: fabricated observations, really judged.

Each is what a clause or an entry once took for right. A right observation goes through first, so
that what is refused is refused for its own sake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fabricated import Cell, check
from records import FIRST, SECOND, leaf, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec.names import NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

StepsOf = Callable[[Place], list[Any]]

TWO, FOUR = Topology(2, 2), Topology(4, 2)
EVENLY = (
    "NamedSharding(mesh=Mesh('i': 8), spec=P('i',)) implies that array axis 0 is partitioned 8 "
    "times, but the dimension size is {rows} (full shape: (20, 2)) should evenly divide the shape"
)


def whole(array: Any, place: Place) -> Any:
    """This process's part of an array with a row per device."""
    rows = np.asarray(array)
    return leaf(rows, shape=[place.topology.devices, *rows.shape[1:]])


def after_control(step: Callable[[str, Place], Any]) -> StepsOf:
    """The control, and the same in both calls."""

    def steps(place: Place) -> list[Any]:
        control = returned(whole(place.rows(2) * 2, place), name="control")
        return [control, step(FIRST, place), step(SECOND, place)]

    return steps


def both(step: Callable[[str, Place], Any]) -> StepsOf:
    """The same in both calls."""
    return lambda place: [step(FIRST, place), step(SECOND, place)]


def error(type: str, message: str, phase: str = "arguments") -> Callable[[str, Place], Any]:
    """A step that raises."""
    return lambda name, place: raised(type, message, name=name, phase=phase)


def inferred(name: str, place: Place, off: float = 0) -> Any:
    """Return JAX's result for uneven rows without `global_shape`: another array in each process."""
    count = place.topology.devices_per_process * (place.process + 1)
    rows = np.arange(count * 2, dtype=np.float32).reshape(count, 2) + 100 * place.process + off
    return returned(leaf(rows, shape=[count * place.topology.processes, 2]), name=name)


CELLS = {
    "uneven rows are refused": Cell(
        "inputs.uneven.global-shape",
        SHARD_MAP,
        FOUR,
        after_control(error("ValueError", EVENLY.format(rows=20))),
        Verdict.CONFORMS,
    ),
    "every process has an idea of its own": Cell(
        "inputs.uneven.inferred",
        SHARD_MAP,
        FOUR,
        after_control(inferred),
        Verdict.KNOWN_DEVIATION,
    ),
    "the body's squeeze complains": Cell(
        "inputs.views.whole-data",
        NEW_PMAP,
        TWO,
        both(
            error(
                "ValueError",
                "cannot select an axis to squeeze out which has size not equal to one, got "
                "shape=(2, 3) and dimensions=(0,)",
                "trace",
            )
        ),
        Verdict.KNOWN_DEVIATION,
    ),
    "another number of rows is complained of": Cell(
        "inputs.uneven.global-shape",
        SHARD_MAP,
        FOUR,
        after_control(error("ValueError", EVENLY.format(rows=12))),
    ),
    "any error that speaks of a shape": Cell(
        "inputs.uneven.global-shape",
        SHARD_MAP,
        FOUR,
        after_control(error("ImportError", "the shape of things to come")),
    ),
    "garbage in place of this process's rows": Cell(
        "inputs.uneven.inferred",
        SHARD_MAP,
        FOUR,
        after_control(lambda name, place: inferred(name, place, off=1)),
    ),
    "data for another process": Cell(
        "inputs.shape.more-than-global-shape",
        SHARD_MAP,
        TWO,
        after_control(lambda name, place: returned(whole(place.rows(2) * 7, place), name=name)),
    ),
    "any error about devices": Cell(
        "inputs.views.local-rows",
        SHARD_MAP,
        TWO,
        both(error("ValueError", "no sharding of the devices is divisible", "trace")),
    ),
    "any error about arrays for devices": Cell(
        "inputs.single-device-arrays.missing",
        SHARD_MAP,
        TWO,
        after_control(error("ValueError", "bad sharding")),
    ),
    "garbage in place of the process's part of its batch": Cell(
        "inputs.views.own-batch",
        SHARD_MAP,
        TWO,
        both(lambda name, place: returned(whole(place.rows(3) * 2 + 1, place), name=name)),
    ),
    "the internal error of 0.9.0 is back": Cell(
        "inputs.views.whole-data",
        NEW_PMAP,
        TWO,
        both(error("StoreException", "Store empty")),
    ),
    "an input on one device is refused for its spec": Cell(
        "inputs.refused.jit.auto.one-device",
        SHARD_MAP,
        TWO,
        both(error("ValueError", "the spec does not match", "lower")),
    ),
    "NumPy ran in place of JAX": Cell(
        "inputs.build.device-put",
        SHARD_MAP,
        TWO,
        both(
            lambda name, place: returned(
                whole(place.rows(2) * 2, place) | {"type": "ndarray", "sharding": None}, name=name
            )
        ),
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_what_jax_does_is_judged_as_it_is(name: str) -> None:
    check(CELLS[name])
