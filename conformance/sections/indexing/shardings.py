"""What `x[0]` is, and what it moves, for each way in which an array may lie on the devices.

Each array is a map's output: replicated, split along another dimension, or split by rows. On a mesh
with Auto axes the compiler chooses the result's sharding, on one with Explicit axes the types do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import (
    Expectation,
    along,
    every,
    not_applicable,
    returns,
    sharded,
    steps,
)
from conformance.sections.indexing import (
    INTEGERS,
    MOVES_WHOLE,
    ROW,
    STAYS,
    access,
    rows_of,
)

NO_SPEC = not_applicable("a PmapSharding has no partition spec")
NO_EXPLICIT = not_applicable("the mesh of a pmap has no Explicit axes")
FORMS = ("zero", "jit-zero", "jit-traced")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a map leaves its output: the `axis` of the devices, and x[0]'s spec as documented."""

    name: str
    text: str
    axis: int | None
    spec: tuple[str | None, ...]
    shape_claim: str
    cost_claim: str
    cost: Expectation

    def whole(self, place: Place, implementation: str) -> Any:
        """The output as NumPy has it, before the index."""
        if self.axis is None:  # the sum over the devices of all processes
            return place.all_rows(*ROW).sum(0) * 2
        return np.moveaxis(rows_of(place, implementation), 0, self.axis)


LAYOUTS = {
    layout.name: layout
    for layout in (
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
            "an array split along its second dimension",
            1,
            ("i", None),
            "migrate-pmap.index-other-dimension-sharded",
            "migrate-pmap.index-other-dimension-no-communication",
            STAYS,
        ),
        Layout(
            "leading",
            "an array split by rows",
            0,
            (None, None),
            "migrate-pmap.index-leading-dimension-sharded",
            "migrate-pmap.index-leading-dimension-gathers",
            MOVES_WHOLE,
        ),
    )
}


def index(impl: Any, cluster: Any, layout: str, form: str, explicit: bool) -> None:
    """A map's output in one of the layouts, and an integer index into it."""
    axis = LAYOUTS[layout].axis
    if not explicit:
        body = _summed if axis is None else _doubled
        x = impl.map(body, out_axes=axis)(impl.given(cluster.rows(*ROW)))
    else:
        x = _explicitly(impl, cluster, axis)
    access(cluster, "access", INTEGERS[form], x)


def _doubled(x: Any) -> Any:
    return x * 2


def _summed(x: Any) -> Any:
    return jax.lax.psum(x * 2, "i")


def _explicitly(impl: Any, cluster: Any, axis: int | None) -> Any:
    """The same output of a shard_map over a mesh whose axis is Explicit."""
    mesh = jax.make_mesh(
        (len(cluster.devices),), ("i",), axis_types=(jax.sharding.AxisType.Explicit,)
    )
    spec = jax.sharding.PartitionSpec
    out = spec() if axis is None else spec(*[None] * axis, "i")

    def body(x: Any) -> Any:
        row = x.squeeze(0)
        return _summed(row) if axis is None else jax.numpy.expand_dims(_doubled(row), axis)

    mapped = impl.adopt(
        jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec("i"), out_specs=out)), "jit(shard_map)"
    )
    sharding = jax.sharding.NamedSharding(mesh, spec("i"))
    return mapped(jax.device_put(cluster.all_rows(*ROW), sharding))


def values(layout: Layout, form: str, implementation: str) -> Expectation:
    """What this process holds of NumPy's answer."""

    def model(place: Place) -> Any:
        answer = INTEGERS[form].of(layout.whole(place, implementation))
        # Of a result that is split by devices a process of shard_map holds its own part.
        split = implementation == SHARD_MAP and "i" in layout.spec
        return place.mine(answer) if split else answer

    return returns(model, text=f"what NumPy gives for {INTEGERS[form].text}")


def has_spec(spec: Sequence[str | None]) -> Expectation:
    """A NamedSharding with this spec, trailing Nones apart, over every device of the map."""
    return sharded(f"a NamedSharding with the spec {list(spec)}", along(*spec))


def _declare(layout: Layout, form: str, explicit: bool) -> None:
    mesh, suffix = (" on a mesh with Explicit axes", "-explicit") if explicit else ("", "")
    for part, claim, holds in (
        ("result", layout.shape_claim, has_spec(layout.spec)),
        ("cost", layout.cost_claim, layout.cost),
    ):
        right = {one: values(layout, form, one) for one in (NEW_PMAP, SHARD_MAP)}
        clause(
            f"indexing.{layout.name}.{form}{suffix}-{part}",
            claim=claim,
            topologies=ONE_PROCESS if explicit else ONE_AND_FOUR,
            parameters={"layout": layout.name, "form": form, "explicit": explicit},
            title=f"{INTEGERS[form].text} of {layout.text}{mesh}: {holds.text}.",
            expect={
                LEGACY_PMAP: NO_EXPLICIT if explicit else NO_SPEC,
                NEW_PMAP: NO_EXPLICIT if explicit else every(holds, right[NEW_PMAP]),
                SHARD_MAP: every(holds, right[SHARD_MAP]),
            },
        )(index)


for _layout in LAYOUTS.values():
    for _form in FORMS:
        for _explicit in (False, True):
            _declare(_layout, _form, _explicit)


def ones_row(place: Place) -> Any:
    """a row of ones"""
    return np.ones(ROW, np.float32)


def doubled_rows(place: Place) -> Any:
    """the doubled rows"""
    return place.rows(*ROW) * 2


@clause(
    "indexing.other-dimension.as-written",
    claim="migrate-pmap.index-other-dimension-sharded",
    needs=devices(8),
    expect={
        LEGACY_PMAP: NO_SPEC,
        NEW_PMAP: not_applicable("jax.device_put places the array, no pmap"),
        SHARD_MAP: steps(map=returns(doubled_rows), access=returns(ones_row)),
    },
)
def as_written(impl: Any, cluster: Any) -> None:
    """The document's own (8, 3, 4) array, split in eight along a dimension of three."""
    cluster.step("map", impl.map(_doubled), impl.given(cluster.rows(*ROW)))
    sharding = impl.sharding(axis=1)
    cluster.step("access", lambda: jax.device_put(np.ones((8, *ROW), np.float32), sharding)[0])
