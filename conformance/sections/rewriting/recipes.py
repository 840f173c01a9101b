"""The recipes that rewrite `pmap` as `jit(shard_map)`, each as the document builds it.

A pmap runs the document's program in pmap's style, shard_map the one in its own. Where the text
fails as written, the next clause changes only what has to be changed, so that each fault shows by
itself: first the mesh, then the specs, then the body's rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import (
    Expectation,
    along,
    every,
    not_applicable,
    noted,
    raises,
    returns,
    sharded,
)

WIDTH = 128
COUNT = 8  # devices of the document's mesh


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


def program(impl: Any, build: Callable[[], Any]) -> Any:
    """A rewritten map as a user's program builds it: what fails while building is recorded too."""
    made: list[Any] = []

    def run(*args: Any) -> Any:
        if not made:
            made.append(build())
        return made[0](*args)

    return impl.adopt(run, "jit(shard_map)")


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

    def build() -> Any:
        rows = spec(form, "i")
        mapped = partial(jax.shard_map, mesh=mesh(form), in_specs=rows, out_specs=rows)
        return jax.jit(mapped(lambda x: x * 2))

    cluster.twice(program(impl, build), cluster.all_rows(WIDTH))


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
    "unchecked-squeezed": "With a mesh of Auto axes, the dimension squeezed and check_vma=False",
    "corrected": "With a mesh of Auto axes, the dimension squeezed and a pmean of the block",
}


def unmapped_replicated(impl: Any, cluster: Any, form: str) -> None:
    """The body adds an unmapped row to its own, the output is replicated."""
    if impl.is_pmap:
        impl.select()
        added: Any = jax.pmap(lambda x, y: x + y, in_axes=(0, None), out_axes=None)
        cluster.twice(impl.adopt(added), cluster.mine(equal_rows(cluster)), ADDED)
        return
    body: Any = {
        "squeezed": lambda x, y: x.squeeze(0) + y,
        "unchecked-squeezed": lambda x, y: x.squeeze(0) + y,
        "corrected": lambda x, y: jax.lax.pmean(x.squeeze(0), "i") + y,
    }.get(form, lambda x, y: x + y)

    def build() -> Any:
        mapped = partial(
            jax.shard_map,
            mesh=mesh(form),
            in_specs=(spec(form, "i"), spec(form)),
            out_specs=spec(form),
            check_vma=not form.startswith("unchecked"),
        )
        return jax.jit(mapped(body))

    cluster.twice(program(impl, build), equal_rows(cluster), ADDED)


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
    """Rows that differ have no replicated sum: pmap shows its first device's, shard_map refuses."""
    function = impl.map(lambda x, y: x + y, in_axes=(0, None), out_axes=None)
    rows = impl.rows(cluster, WIDTH)
    cluster.twice(lambda: np.asarray(function(rows, ADDED)))


@clause(
    "rewriting.unmapped-replicated.replicas-agree",
    claim="migrate-pmap.unmapped-and-replicated-pmap",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        noted("different replicas", "one value on all devices", lambda _, value: value == 1),
    ),
)
def replicas_agree(impl: Any, cluster: Any) -> None:
    """What comes back replicated from rows that differ (unchecked) is equal on all devices."""
    function = impl.map(lambda x, y: x + y, in_axes=(0, None), out_axes=None, check_vma=False)
    result = cluster.step("call", function, impl.rows(cluster, WIDTH), ADDED)
    replicas = {np.asarray(shard.data).tobytes() for shard in result.addressable_shards}
    cluster.note("different replicas", len(replicas))
