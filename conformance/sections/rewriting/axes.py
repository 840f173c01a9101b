"""Several axes of parallelism: pmap inside pmap, and the one shard_map that takes its place."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import every, not_applicable, noted, returns
from conformance.sections.rewriting.recipes import (
    COUNT,
    FORMS,
    REPLICATED,
    WIDTH,
    mesh,
    program,
    spec,
)

GRID = (4, 2)  # devices of the document's mesh of two axes


def grid(place: Place) -> Any:
    """One row per device of the mesh of two axes."""
    return place.all_rows(WIDTH).reshape(*GRID, WIDTH)


def total(place: Place) -> Any:
    """the sum over all devices, of one row's shape"""
    return grid(place).sum((0, 1))


def totals(place: Place) -> Any:
    """the sum over all devices, at every point of the grid"""
    return np.broadcast_to(total(place), (*GRID, WIDTH))


def mesh_sizes(place: Place) -> Any:
    """4 devices along 'i' and 2 along 'j', as in the example's mesh"""
    return [np.full(GRID, GRID[0], np.int32), np.full(GRID, GRID[1], np.int32)]


ONLY_PMAP = not_applicable("the clause is about pmap inside pmap")
ONLY_SHARD_MAP = not_applicable("the clause is about shard_map's program")


@clause(
    "rewriting.nested-pmap.as-written",
    claim="migrate-pmap.nested-pmap-psum",
    needs=devices(COUNT),
    expect={LEGACY_PMAP: returns(totals), NEW_PMAP: returns(totals), SHARD_MAP: ONLY_PMAP},
)
def nested_pmap(impl: Any, cluster: Any) -> None:
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
    expect={LEGACY_PMAP: returns(mesh_sizes), NEW_PMAP: returns(mesh_sizes), SHARD_MAP: ONLY_PMAP},
)
def nested_as_commented(impl: Any, cluster: Any) -> None:
    """The nest in the example's comment, 'i' inside 'j', has the mesh's sizes on its input."""
    impl.select()
    inner: Any = jax.pmap(lambda x: (x * jax.lax.psum(1, "i"), x * jax.lax.psum(1, "j")), "i")
    cluster.twice(impl.adopt(jax.pmap(inner, "j")), np.ones(GRID, np.int32))


AXES = {**FORMS, "corrected": "With a mesh of Auto axes and both leading dimensions squeezed"}


def multiple_axes(impl: Any, cluster: Any, form: str) -> None:
    """The body sums its block over both axes of a 4 by 2 mesh."""

    def body(x: Any) -> Any:
        return jax.lax.psum(x.squeeze((0, 1)) if form == "corrected" else x, ("i", "j"))

    def build() -> Any:
        mapped = partial(
            jax.shard_map,
            mesh=mesh(form, GRID, ("i", "j")),
            in_specs=spec(form, "i", "j"),
            out_specs=spec(form),
        )
        return jax.jit(mapped(body))

    cluster.twice(program(impl, build), grid(cluster))


for _form, _title in AXES.items():
    clause(
        f"rewriting.multiple-axes.{_form}",
        claim="migrate-pmap.rewrite-multiple-axes",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"form": _form},
        title=f"{_title}, the sum over both axes comes back replicated, of one row's shape.",
        expect={
            LEGACY_PMAP: ONLY_SHARD_MAP,
            NEW_PMAP: ONLY_SHARD_MAP,
            SHARD_MAP: every(returns(total), REPLICATED),
        },
    )(multiple_axes)


@clause(
    "rewriting.multiple-axes.body-rank",
    claim="migrate-pmap.multiple-axes-body-rank",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: ONLY_SHARD_MAP,
        NEW_PMAP: ONLY_SHARD_MAP,
        SHARD_MAP: noted("shape", "the body sees (1, 1, 128)", lambda _, v: v == [1, 1, WIDTH]),
    },
)
def body_rank(impl: Any, cluster: Any) -> None:
    """The body of a shard_map over two axes keeps both of them, as dimensions of one."""
    shapes = []

    def body(x: Any) -> Any:
        shapes.append(list(x.shape))
        return jax.lax.psum(x, ("i", "j"))

    both = spec("", "i", "j")
    function = jax.jit(
        jax.shard_map(body, mesh=mesh("", GRID, ("i", "j")), in_specs=both, out_specs=spec(""))
    )
    cluster.step("call", impl.adopt(function, "jit(shard_map)"), grid(cluster))
    cluster.note("shape", shapes[0])
