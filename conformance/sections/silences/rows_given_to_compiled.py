"""Rows of outputs given to functions that were compiled or exported for one device.

A program that serves or evaluates a model compiles a function ahead of time, and passes it the
first row of replicated weights. Under legacy pmap such a row is on one device, and is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

from conformance.sections.silences.answers import (
    ONE_PROCESS_ALONE,
    WIDTH,
    answers,
    ask,
    numbers,
)
from conformance.spec.aspects import DEVICES
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.combining import of_result
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns, twice
from conformance.spec.family import table
from conformance.spec.observation import Step
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.rows-given-to-compiled-functions",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
)

SHAPE = jax.ShapeDtypeStruct((WIDTH,), np.float32)


def served(weights: Any) -> Any:
    """What is compiled: order and values of the row tell."""
    return weights * 3 - weights[::-1]


def of_shape(_: Any) -> Any:
    """Compiled for a shape and a dtype."""
    return jax.jit(served).lower(SHAPE).compile()


def of_numpy(_: Any) -> Any:
    """Compiled for a NumPy array."""
    return jax.jit(served).lower(numbers(WIDTH)).compile()


def of_tree(_: Any) -> Any:
    """Compiled for a pytree of one shape."""
    function = jax.jit(lambda tree: served(tree["w"])).lower({"w": SHAPE}).compile()
    return lambda row: function({"w": row})


def exported(_: Any) -> Any:
    """Exported for a shape and a dtype."""
    return export.export(jax.jit(served))(SHAPE).call


def exported_for_the_row(out: Any) -> Any:
    """Exported for the row itself, called with a NumPy array of its values."""
    stage = export.export(jax.jit(served))(out[0])
    return lambda row: stage.call(np.asarray(row))


def on_the_first(_: Place, step: Step) -> tuple[bool, str]:
    """Whether the result is on one device alone, the first."""
    seen = [leaf.sharding["devices"] for leaf in step.leaves if leaf.sharding]
    return bool(seen) and all(where == [0] for where in seen), f"on {seen}"


@dataclass(frozen=True, slots=True)
class Row:
    """A compiled function and what it is given of an output."""

    key: str
    text: str
    compile: Callable[[Any], Callable[[Any], Any]]
    index: int = 0
    convert: Callable[[Any], Any] = lambda row: row
    fixes: str | None = None

    def columns(self) -> Columns:
        """NumPy's numbers, on the first device."""

        def model(place: Place) -> Any:
            return served(place.rows(WIDTH)[self.index] * 2)

        there = of_result("on [0], as legacy's", on_the_first, claims={DEVICES})
        return everywhere(twice(every(returns(model, text="what NumPy gives"), there)))


def put(row: Any) -> Any:
    return jax.device_put(row, jax.local_devices()[0])


FOR_SHAPE = "A function that was lowered for a ShapeDtypeStruct and compiled takes"
ROWS: Mapping[str, Row] = table(
    Row("of-shape", f"{FOR_SHAPE} a row `out[0]` of an output.", of_shape),
    Row("second-row", f"{FOR_SHAPE} a row `out[1]` of an output.", of_shape, 1),
    Row(
        "of-numpy",
        "A function that was lowered for a NumPy array and compiled takes a row of an output.",
        of_numpy,
    ),
    Row("in-tree", f"{FOR_SHAPE} a row of an output in a dictionary.", of_tree),
    Row("exported", "An exported function takes a row of an output.", exported),
    Row(
        "exported-for-row",
        "A function that is exported for a row of an output takes a NumPy array.",
        exported_for_the_row,
    ),
    Row(
        "as-numpy",
        f"{FOR_SHAPE} `np.asarray(out[0])`.",
        of_shape,
        convert=np.asarray,
        fixes="silences.compiled.of-shape",
    ),
    Row(
        "put",
        f"{FOR_SHAPE} `jax.device_put(out[0], device)`.",
        of_shape,
        convert=put,
        fixes="silences.compiled.of-shape",
    ),
    Row(
        "put-in-tree",
        f"{FOR_SHAPE} `jax.device_put(out[0], device)` in a dictionary.",
        of_tree,
        convert=put,
        fixes="silences.compiled.in-tree",
    ),
)


@DEFAULTS.family(
    "silences.compiled.{row}",
    row=ROWS,
    title=lambda row: row.text,
    fact="silences.compiled.{row}",
    expect=lambda row: row.columns(),
)
def compiled(impl: Implementation, cluster: Cluster, row: Row) -> None:
    """A compiled function called twice with a row of an output."""
    out = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    function = row.compile(out)
    cluster.twice(lambda: function(row.convert(out[row.index])))


@DEFAULTS.clause(
    "silences.compiled.exported-devices",
    title="A function that is exported for a row of an output is for one device.",
    expect=everywhere(in_steps(answers(1), "the export")),
)
def exported_devices(impl: Implementation, cluster: Cluster) -> None:
    """An export for a row of an output."""
    out = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    ask(cluster, "the export", lambda: export.export(jax.jit(served))(out[0]).nr_devices)


@DEFAULTS.clause(
    "silences.compiled.exported-for-shape",
    title="A function that is exported for the shape and dtype of a row is for one device.",
    fixes="silences.compiled.exported-devices",
    expect=everywhere(in_steps(answers(1), "the export")),
)
def exported_for_shape(impl: Implementation, cluster: Cluster) -> None:
    """An export for a shape that is like a row of an output."""
    row = impl.map(double())(impl.given(cluster.rows(WIDTH)))[0]
    shape = jax.ShapeDtypeStruct(row.shape, row.dtype)
    ask(cluster, "the export", lambda: export.export(jax.jit(served))(shape).nr_devices)
