"""Several axes of parallelism: pmap inside pmap, and the one shard_map that takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.sections.rewriting import (
    AS_WRITTEN,
    AUTO_AXES,
    COUNT,
    DEFAULT_AXES,
    LABEL,
    REPLICATED,
    WIDTH,
    P,
    Recipe,
    found,
    program,
    shard_mapped,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_pmaps, of_shard_map
from conformance.spec.expectation import every, in_steps, noted, returns, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation

GRID = (4, 2)  # devices of the document's mesh of two axes

OF_NESTS = "the clause is about pmap inside pmap"
ALL_DEVICES_HERE = "the documented example has one process"
OF_ITS_PROGRAM = "the clause is about shard_map's program"


def grid(place: Place) -> Any:
    """One row per device of the mesh of two axes."""
    return place.all_rows(WIDTH).reshape(*GRID, WIDTH)


@described("the sum over all devices, of one row's shape")
def total(place: Place) -> Any:
    return grid(place).sum((0, 1))


@described("the sum over all devices, at every point of the grid")
def totals(place: Place) -> Any:
    return np.broadcast_to(total(place), (*GRID, WIDTH))


@described("4 devices along 'i' and 2 along 'j', as in the example's mesh")
def mesh_sizes(place: Place) -> Any:
    return np.full(GRID, GRID[0], np.int32), np.full(GRID, GRID[1], np.int32)


def other_way_round(place: Place) -> Any:
    """2 devices along 'i' and 4 along 'j'"""
    return mesh_sizes(place)[::-1]


@described("the sum over all devices, with the block's two leading dimensions")
def total_in_block(place: Place) -> Any:
    return total(place)[None, None]


@clause(
    "rewriting.nested-pmap.as-written",
    claim="migrate-pmap.nested-pmap-psum",
    needs=devices(COUNT),
    left_out=ALL_DEVICES_HERE,
    expect=of_pmaps(twice(returns(totals)), OF_NESTS),
)
def nested_pmap(impl: Implementation, cluster: Cluster) -> None:
    """The example's nested pmap sums over both axes and keeps the input's shape."""
    impl.select()

    @partial(jax.pmap, axis_name="i")
    @partial(jax.pmap, axis_name="j")
    def f(x: Any) -> Any:
        return jax.lax.psum(x, ("i", "j"))

    cluster.twice(impl.adopt(f), grid(cluster))


@clause(
    "rewriting.nested-pmap.as-commented",
    claim="migrate-pmap.rewrite-multiple-axes",
    needs=devices(COUNT),
    left_out=ALL_DEVICES_HERE,
    expect=of_pmaps(
        twice(returns(mesh_sizes, mistakes={"the two sizes the other way round": other_way_round})),
        OF_NESTS,
    ),
)
def nested_as_commented(impl: Implementation, cluster: Cluster) -> None:
    """The nested pmap of the example's comment, 'i' inside 'j', with the mesh's sizes as its
    input's.
    """
    impl.select()
    inner: Any = jax.pmap(lambda x: (x * jax.lax.psum(1, "i"), x * jax.lax.psum(1, "j")), "i")
    cluster.twice(impl.adopt(jax.pmap(inner, "j")), np.ones(GRID, np.int32))


def sum_over_both() -> Body:
    """The sum over both axes."""
    return lambda x: jax.lax.psum(x, ("i", "j"))


def sum_squeezed() -> Body:
    """The same of the block's one row."""
    return lambda x: jax.lax.psum(x.squeeze((0, 1)), ("i", "j"))


AXES: Mapping[str, Recipe] = table(
    Recipe("as-written", AS_WRITTEN, sum_over_both),
    Recipe("default-axes", DEFAULT_AXES, sum_over_both),
    Recipe("auto-axes", AUTO_AXES, sum_over_both, fact="rewriting.multiple-axes.body-rank"),
    Recipe("corrected", AUTO_AXES, sum_squeezed, changed=" and both leading dimensions squeezed"),
)


@family(
    "rewriting.multiple-axes.{recipe}",
    recipe=AXES,
    claim="migrate-pmap.rewrite-multiple-axes",
    title=(
        "{recipe.form.text}{recipe.changed}, the sum over both axes is returned replicated, "
        "with one row's shape."
    ),
    fact=found,
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(
        twice(
            every(
                returns(total, mistakes={"the sum in a block of rank 3": total_in_block}),
                REPLICATED,
            )
        ),
        OF_ITS_PROGRAM,
    ),
)
def multiple_axes(impl: Implementation, cluster: Cluster, recipe: Recipe) -> None:
    """The body sums its block over both axes of a 4 by 2 mesh."""

    def build() -> Any:
        form = recipe.form
        return shard_mapped(
            recipe.body(),
            form.mesh(GRID, ("i", "j")),
            in_specs=form.spec("i", "j"),
            out_specs=form.spec(),
        )

    cluster.twice(program(impl, build), grid(cluster))


@clause(
    "rewriting.multiple-axes.body-rank",
    claim="migrate-pmap.multiple-axes-body-rank",
    cause="body-keeps-the-mapped-axis",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(
        in_steps(
            every(
                noted("shape", "the body sees (1, 1, 128)", lambda _, v: v == [1, 1, WIDTH]),
                returns(total_in_block),
            ),
            "call",
        ),
        OF_ITS_PROGRAM,
    ),
)
def body_rank(impl: Implementation, cluster: Cluster) -> None:
    """In the body of a shard_map over two axes, both remain as dimensions of size one."""
    shapes = []

    def body(x: Any) -> Any:
        shapes.append(list(x.shape))
        return jax.lax.psum(x, ("i", "j"))

    mesh = AUTO_AXES.mesh(GRID, ("i", "j"))
    function = shard_mapped(body, mesh, in_specs=P("i", "j"), out_specs=P())
    cluster.step("call", impl.adopt(function, LABEL), grid(cluster))
    cluster.note("shape", shapes[0])
