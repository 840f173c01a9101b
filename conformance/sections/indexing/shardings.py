"""The result of `x[0]` and its communication, for each sharding of the array.

Each array is an output: replicated, sharded along another dimension, or sharded by rows. On a mesh
with Auto axes the compiler chooses the result's sharding; with Explicit axes the types do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.indexing import (
    BOUNCES,
    INTEGERS,
    MOVES_WHOLE,
    ROW,
    STAYS,
    Form,
    access,
    accessed,
    double_sum,
    double_summed,
    named,
    output,
    rows_of,
)
from conformance.spec.clause import clause, devices
from conformance.spec.expectation import not_applicable, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

NO_SPEC = not_applicable("a PmapSharding has no partition spec")
WHILE_TRACING = "the result does not depend on the number of processes"
NO_EXPLICIT = not_applicable("the mesh of a pmap has no Explicit axes")


@dataclass(frozen=True, slots=True)
class Layout:
    """The sharding of an output: the `axis` of the devices, and the documented spec of x[0]."""

    key: str
    text: str
    axis: int | None
    spec: tuple[str | None, ...]
    result_claim: str
    cost_claim: str
    cost: Expectation

    def model(self, place: Place, implementation: str) -> Any:
        """The output as NumPy has it, before the index."""
        if self.axis is None:
            return double_summed(place)
        return np.moveaxis(rows_of(place, implementation), 0, self.axis)

    def result(self, implementation: str) -> Expectation:
        """Expect the documented sharding of x[0]."""
        return named(implementation, *self.spec)


LAYOUTS: Mapping[str, Layout] = table(
    Layout(
        "replicated",
        "a replicated array",
        None,
        (None,),
        "migrate-pmap.index-replicated",
        "migrate-pmap.index-replicated-no-communication",
        STAYS,
    ),
    Layout(
        "other-dimension",
        "an array sharded along its second dimension",
        1,
        ("i", None),
        "migrate-pmap.index-other-dimension-sharded",
        "migrate-pmap.index-other-dimension-no-communication",
        STAYS,
    ),
    Layout(
        "leading",
        "a row-sharded array",
        0,
        (None, None),
        "migrate-pmap.index-leading-dimension-sharded",
        "migrate-pmap.index-leading-dimension-gathers",
        MOVES_WHOLE,
    ),
)

FORMS: Mapping[str, Form] = {key: INTEGERS[key] for key in ("zero", "jit-zero", "jit-traced")}


@dataclass(frozen=True, slots=True)
class Mesh:
    """The axis type of the mesh, and its words for a title."""

    key: str
    text: str
    explicit: bool


MESHES: Mapping[str, Mesh] = table(
    Mesh("", "", explicit=False),
    Mesh("-explicit", " on a mesh with Explicit axes", explicit=True),
)


def topologies(mesh: Mesh) -> tuple[str, ...]:
    """Explicit axes are looked at in one process."""
    return ONE_PROCESS if mesh.explicit else ONE_AND_FOUR


def values(layout: Layout, form: Form, implementation: str) -> Expectation:
    """Expect NumPy's result, this process's part of it."""

    def model(place: Place) -> Any:
        answer = form.by_numpy(layout.model(place, implementation))
        # Of a result that is split by devices a process of shard_map holds its own part.
        split = implementation == SHARD_MAP and "i" in layout.spec
        return place.mine(answer) if split else answer

    return returns(model, text=f"what NumPy gives for {form.text}")


def results(layout: Layout, form: Form, mesh: Mesh) -> dict[str, Expectation]:
    """The result's sharding, of every implementation that can have such an array."""

    def expectation(implementation: str) -> Expectation:
        return accessed(layout.result(implementation), values(layout, form, implementation))

    return {
        LEGACY_PMAP: NO_EXPLICIT if mesh.explicit else NO_SPEC,
        NEW_PMAP: NO_EXPLICIT if mesh.explicit else expectation(NEW_PMAP),
        SHARD_MAP: expectation(SHARD_MAP),
    }


def legacy_cost(layout: Layout, form: Form) -> Expectation:
    """Expect no communication; the array goes through the host unless the index has a fast path.

    The fast path is for an array that is not sharded along the mapped axis, or a Python integer
    into rows.
    """
    fast = layout.axis is None or (layout.axis == 0 and not form.jitted)
    return STAYS if fast else BOUNCES


def costs(layout: Layout, form: Form, mesh: Mesh) -> dict[str, Expectation]:
    """Return what the index is expected to communicate. Legacy pmap, the reference, never
    communicates.
    """

    def expectation(implementation: str, holds: Expectation) -> Expectation:
        return accessed(holds, values(layout, form, implementation))

    return {
        LEGACY_PMAP: NO_EXPLICIT
        if mesh.explicit
        else expectation(LEGACY_PMAP, legacy_cost(layout, form)),
        NEW_PMAP: NO_EXPLICIT if mesh.explicit else expectation(NEW_PMAP, layout.cost),
        SHARD_MAP: expectation(SHARD_MAP, layout.cost),
    }


@family(
    "indexing.{layout}.{form}{mesh}-result",
    layout=LAYOUTS,
    form=FORMS,
    mesh=MESHES,
    claim=lambda layout: layout.result_claim,
    title=lambda layout, form, mesh: (
        f"{form.text} of {layout.text}{mesh.text}: {layout.result(SHARD_MAP).text}."
    ),
    fact="indexing.{layout}.result{mesh}",
    topologies=topologies,
    left_out=lambda mesh: WHILE_TRACING if mesh.explicit else "",
    needs=devices(2),
    expect=results,
)
@family(
    "indexing.{layout}.{form}{mesh}-cost",
    layout=LAYOUTS,
    form=FORMS,
    mesh=MESHES,
    claim=lambda layout: layout.cost_claim,
    title=lambda layout, form, mesh: (
        f"{form.text} of {layout.text}{mesh.text}: {layout.cost.text}"
        f"{'' if mesh.explicit else '; legacy pmap: ' + legacy_cost(layout, form).text}."
    ),
    fact="indexing.{layout}.cost{mesh}",
    topologies=topologies,
    left_out=lambda mesh: WHILE_TRACING if mesh.explicit else "",
    needs=devices(2),
    expect=costs,
)
def index(impl: Implementation, cluster: Cluster, layout: Layout, form: Form, mesh: Mesh) -> None:
    """A map's output in one of the layouts, and an integer index into it."""
    if mesh.explicit:
        x = explicit_output(impl, cluster, layout.axis)
    else:
        body = double_sum() if layout.axis is None else double()
        x = output(impl, cluster, body, out_axes=layout.axis)
    access(cluster, "access", form, x)


def explicit_output(impl: Implementation, cluster: Cluster, axis: int | None) -> Any:
    """The same output of a shard_map over a mesh whose axis is Explicit."""
    mesh = jax.make_mesh(
        (len(cluster.devices),), ("i",), axis_types=(jax.sharding.AxisType.Explicit,)
    )
    spec = jax.sharding.PartitionSpec
    out = spec() if axis is None else spec(*[None] * axis, "i")

    def body(x: Any) -> Any:
        row = x.squeeze(0)
        return double_sum()(row) if axis is None else jax.numpy.expand_dims(double()(row), axis)

    mapped = impl.adopt(
        jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec("i"), out_specs=out)), "jit(shard_map)"
    )
    sharding = jax.sharding.NamedSharding(mesh, spec("i"))
    return mapped(jax.device_put(cluster.all_rows(*ROW), sharding))


@described("a row of ones")
def ones_row(place: Place) -> Any:
    return np.ones(ROW, np.float32)


@clause(
    "indexing.other-dimension.as-written",
    claim="migrate-pmap.index-other-dimension-sharded",
    needs=devices(8),
    left_out="the result does not depend on the number of processes",
    expect={
        LEGACY_PMAP: NO_SPEC,
        NEW_PMAP: not_applicable("jax.device_put places the array, no pmap"),
        SHARD_MAP: steps(
            map=returns(doubled(*ROW), text="the doubled rows"), access=returns(ones_row)
        ),
    },
)
def as_written(impl: Implementation, cluster: Cluster) -> None:
    """The document's own (8, 3, 4) array, sharded in eight along a dimension of size three."""
    cluster.step("map", impl.map(double()), impl.given(cluster.rows(*ROW)))
    sharding = impl.sharding(axis=1)
    cluster.step("access", lambda: jax.device_put(np.ones((8, *ROW), np.float32), sharding)[0])
