"""The recipes that rewrite `pmap` as `jit(shard_map)`, each as the document builds it.

A pmap runs the document's program in pmap's style, shard_map the one in its own. Where the text
fails as written, the next clause changes only what has to be changed, so that each fault shows by
itself: first the mesh, then the specs, then the body's rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.clause import ONE_AND_FOUR, clause, devices
from conformance.expectation import (
    Expectation,
    every,
    not_applicable,
    noted,
    raises,
    returns,
    sharded,
)
from conformance.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.topology import Place

WIDTH = 128
COUNT = 8  # devices of the document's mesh
GRID = (4, 2)  # devices of its mesh of two axes


def mesh(form: str, sizes: tuple[int, ...] = (COUNT,), names: tuple[str, ...] = ("i",)) -> Any:
    """The document's mesh: as written, or with what fails there put right."""
    make: Any = jax.make_mesh  # its parameters' names differ between versions
    if form == "as-written":
        return make(shape=sizes, axis_names=names)
    if form == "default-axes":
        return make(sizes, names)
    return make(sizes, names, axis_types=(jax.sharding.AxisType.Auto,) * len(sizes))


def spec(form: str, *axes: str) -> Any:
    """`jax.P` where the clause is about the document's very words."""
    if form == "as-written":
        return jax.P(*axes)
    return jax.sharding.PartitionSpec(*axes)


def along(*axes: str | None) -> Callable[[Place, Mapping[str, Any]], bool]:
    """Whether a NamedSharding has this spec, trailing None left out."""

    def holds(place: Place, sharding: Mapping[str, Any]) -> bool:
        found = list(sharding["spec"])
        while found and found[-1] is None:
            found.pop()
        return sharding["type"] == "NamedSharding" and found == list(axes)

    return holds


REPLICATED = sharded("replicated", along())
OVER_I = sharded("sharded over 'i'", along("i"))


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(WIDTH) * 2


FORMS = {
    "as-written": "With the mesh as written",
    "default-axes": "With the mesh's sizes by position, so with make_mesh's default axis types",
    "auto-axes": "With a mesh of Auto axes",
}


# --- Basic map


def basic_map(impl: Any, cluster: Any, form: str) -> None:
    """The body doubles its row."""
    if impl.is_pmap:
        impl.select()
        cluster.twice(impl.adopt(jax.pmap(lambda x: x * 2)), cluster.rows(WIDTH))
        return
    function = jax.jit(
        partial(
            jax.shard_map, mesh=mesh(form), in_specs=spec(form, "i"), out_specs=spec(form, "i")
        )(lambda x: x * 2)
    )
    cluster.twice(impl.adopt(function, "jit(shard_map)"), cluster.all_rows(WIDTH))


for _form, _title in FORMS.items():
    clause(
        f"rewriting.basic-map.{_form}",
        claim="migrate-pmap.rewrite-basic-map",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"form": _form},
        title=f"{_title}, the basic map returns its rows doubled.",
        expect={
            LEGACY_PMAP: returns(doubled),
            NEW_PMAP: returns(doubled),
            SHARD_MAP: every(returns(doubled), OVER_I),
        },
    )(basic_map)


@clause(
    "rewriting.basic-map.placed-on-explicit-axes",
    claim="migrate-pmap.rewrite-basic-map",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: not_applicable("the clause is about shard_map's mesh"),
        NEW_PMAP: not_applicable("the clause is about shard_map's mesh"),
        SHARD_MAP: every(returns(doubled), OVER_I),
    },
)
def placed_on_explicit_axes(impl: Any, cluster: Any) -> None:
    """With make_mesh's default axis types, an input placed on the mesh beforehand is taken."""
    chosen, rows = mesh("default-axes"), spec("", "i")
    function = jax.jit(jax.shard_map(lambda x: x * 2, mesh=chosen, in_specs=rows, out_specs=rows))
    sharding = jax.sharding.NamedSharding(chosen, rows)
    given = jax.make_array_from_process_local_data(sharding, cluster.rows(WIDTH))
    cluster.twice(impl.adopt(function, "jit(shard_map)"), given)


@clause(
    "rewriting.specs.second-dimension",
    claim="migrate-pmap.specs-replace-axes",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: returns(doubled),
        NEW_PMAP: returns(doubled),
        SHARD_MAP: every(returns(doubled), OVER_I),
    },
)
def second_dimension(impl: Any, cluster: Any) -> None:
    """`in_axes=1` becomes `P(None, 'i')` and `out_axes=0` becomes `P('i')`."""
    function = impl.map(lambda x: x * 2, in_axes=1, out_axes=0)
    if impl.is_pmap:
        cluster.twice(function, cluster.rows(WIDTH).T)
        return
    cluster.twice(function, cluster.all_rows(WIDTH).T)


# --- Unmapped axes and replicated output

ADDED = np.arange(WIDTH, dtype=np.float32)


def equal_rows(place: Place) -> Any:
    """The same row for every device: only then is x + y one value that can be replicated."""
    return np.broadcast_to(place.all_rows(WIDTH)[:1], (place.topology.devices, WIDTH))


def one_sum(place: Place) -> Any:
    """x + y, of one row's shape"""
    return equal_rows(place)[0] + ADDED


def first_sum(place: Place) -> Any:
    """the process's first row plus y, of one row's shape"""
    return place.rows(WIDTH)[0] + ADDED


def mean_sum(place: Place) -> Any:
    """the mean over all rows plus y, of one row's shape"""
    return place.all_rows(WIDTH).mean(0) + ADDED


UNMAPPED = {
    **FORMS,
    "squeezed": "With a mesh of Auto axes and the block's leading dimension squeezed",
    "unchecked": "With a mesh of Auto axes and check_vma=False",
    "corrected": "With a mesh of Auto axes, the dimension squeezed and a pmean of the block",
}


def unmapped_replicated(impl: Any, cluster: Any, form: str) -> None:
    """The body adds an unmapped row to its own, the output is replicated."""
    if impl.is_pmap:
        impl.select()
        added: Any = jax.pmap(lambda x, y: x + y, in_axes=(0, None), out_axes=None)
        cluster.twice(impl.adopt(added), cluster.mine(equal_rows(cluster)), ADDED)
        return
    bodies: dict[str, Any] = {
        "squeezed": lambda x, y: x.squeeze(0) + y,
        "corrected": lambda x, y: jax.lax.pmean(x.squeeze(0), "i") + y,
    }
    function = jax.jit(
        partial(
            jax.shard_map,
            mesh=mesh(form),
            in_specs=(spec(form, "i"), spec(form)),
            out_specs=spec(form),
            check_vma=form != "unchecked",
        )(bodies.get(form, lambda x, y: x + y))
    )
    cluster.twice(impl.adopt(function, "jit(shard_map)"), equal_rows(cluster), ADDED)


for _form, _title in UNMAPPED.items():
    _once: Expectation = not_applicable("the change is to shard_map's program only")
    clause(
        f"rewriting.unmapped-replicated.{_form}",
        claim="migrate-pmap.rewrite-unmapped-and-replicated",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"form": _form},
        title=f"{_title}, an unmapped argument is added and comes back replicated.",
        expect={
            LEGACY_PMAP: returns(one_sum) if _form == "as-written" else _once,
            NEW_PMAP: every(returns(one_sum), REPLICATED) if _form == "as-written" else _once,
            SHARD_MAP: every(returns(one_sum), REPLICATED),
        },
    )(unmapped_replicated)


@clause(
    "rewriting.unmapped-replicated.different-rows",
    claim="migrate-pmap.unmapped-and-replicated-pmap",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: returns(first_sum),
        NEW_PMAP: returns(first_sum),
        SHARD_MAP: raises(ValueError, "require replication which can't be statically inferred"),
    },
)
def different_rows(impl: Any, cluster: Any) -> None:
    """Rows that differ have no replicated sum: pmap keeps its first device's, shard_map refuses."""
    function = impl.map(lambda x, y: x + y, in_axes=(0, None), out_axes=None)
    cluster.twice(function, impl.rows(cluster, WIDTH), ADDED)


# --- Multiple axes of parallelism


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

    function = jax.jit(
        partial(
            jax.shard_map,
            mesh=mesh(form, GRID, ("i", "j")),
            in_specs=spec(form, "i", "j"),
            out_specs=spec(form),
        )(body)
    )
    cluster.twice(impl.adopt(function, "jit(shard_map)"), grid(cluster))


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
