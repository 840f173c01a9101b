"""The recipes that rewrite `pmap` as `jit(shard_map)`, each as the document builds it.

A pmap runs the document's program in pmap's style, shard_map the one in its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.rewriting import (
    AS_WRITTEN,
    AUTO_AXES,
    COUNT,
    DEFAULT_AXES,
    FORMS,
    LABEL,
    NOT_INFERRED,
    OVER_I,
    REPLICATED,
    WIDTH,
    Form,
    Recipe,
    found,
    placed_on,
    program,
    shard_mapped,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, raises, returns, steps, twice
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import Body, add, double, doubled
from conformance.worker.protocols import Cluster, Implementation

# --- Basic map

DOUBLED = twice(returns(doubled(WIDTH)))
DOUBLED_IN_PLACE: Columns = {
    LEGACY_PMAP: DOUBLED,
    NEW_PMAP: DOUBLED,
    SHARD_MAP: every(DOUBLED, twice(OVER_I)),
}

DEFAULTS = Defaults(needs=devices(COUNT), topologies=ONE_AND_FOUR)


@DEFAULTS.family(
    "rewriting.basic-map.{form}",
    form=FORMS,
    claim="migrate-pmap.rewrite-basic-map",
    title="{form.text}, the basic map returns its rows doubled.",
    expect=DOUBLED_IN_PLACE,
)
def basic_map(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """The body doubles its row."""
    if impl.is_pmap:
        impl.select()
        cluster.twice(impl.adopt(jax.pmap(double())), cluster.rows(WIDTH))
        return

    def build() -> Any:
        rows = form.spec("i")
        return shard_mapped(double(), form.mesh((COUNT,), ("i",)), in_specs=rows, out_specs=rows)

    cluster.twice(program(impl, build), cluster.all_rows(WIDTH))


@DEFAULTS.clause(
    "rewriting.basic-map.placed-on-explicit-axes",
    claim="migrate-pmap.rewrite-basic-map",
    expect=of_shard_map(every(DOUBLED, twice(OVER_I)), "the clause is about shard_map's mesh"),
)
def placed_on_explicit_axes(impl: Implementation, cluster: Cluster) -> None:
    """With make_mesh's default axis types, an input that is already on the mesh is accepted."""
    mesh = DEFAULT_AXES.mesh((COUNT,), ("i",))
    function = impl.adopt(shard_mapped(double(), mesh), LABEL)
    cluster.twice(function, placed_on(mesh, cluster.rows(WIDTH)))


@DEFAULTS.clause(
    "rewriting.specs.second-dimension",
    claim="migrate-pmap.specs-replace-axes",
    expect=DOUBLED_IN_PLACE,
)
def second_dimension(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes=1` becomes `P(None, 'i')` and `out_axes=0` becomes `P('i')`."""
    function = impl.map(double(), in_axes=1, out_axes=0)
    cluster.twice(function, impl.rows(cluster, WIDTH).T)


# --- Unmapped axes and replicated output

ADDED = np.arange(WIDTH, dtype=np.float32)


def add_squeezed() -> Body:
    """The block's one row plus the unmapped one."""
    return lambda x, y: x.squeeze(0) + y


def add_to_mean() -> Body:
    """The mean of all devices' rows plus the unmapped one."""
    return lambda x, y: jax.lax.pmean(x.squeeze(0), "i") + y


UNMAPPED: Mapping[str, Recipe] = table(
    Recipe("as-written", AS_WRITTEN, add),
    Recipe("default-axes", DEFAULT_AXES, add),
    Recipe("auto-axes", AUTO_AXES, add),
    Recipe(
        "squeezed",
        AUTO_AXES,
        add_squeezed,
        changed=" and the block's leading dimension squeezed",
        fact="rewriting.unmapped-replicated.auto-axes",
    ),
    Recipe("unchecked", AUTO_AXES, add, changed=" and check_vma=False", check_vma=False),
    Recipe(
        "unchecked-squeezed",
        AUTO_AXES,
        add_squeezed,
        changed=", the dimension squeezed and check_vma=False",
        check_vma=False,
        fact="rewriting.unmapped-replicated.unchecked",
    ),
    Recipe(
        "corrected",
        AUTO_AXES,
        add_to_mean,
        changed=", the dimension squeezed and a pmean of the block",
    ),
)


def equal_rows(place: Place) -> Any:
    """The same row for every device: only then is x + y one value that can be replicated."""
    return np.broadcast_to(place.all_rows(WIDTH)[:1], (place.topology.devices, WIDTH))


@described("x + y, of one row's shape")
def one_sum(place: Place) -> Any:
    return equal_rows(place)[0] + ADDED


@described("the same, with the block's leading dimension")
def sum_in_block(place: Place) -> Any:
    return one_sum(place)[None]


@described("the process's first row plus y, of one row's shape")
def first_sum(place: Place) -> Any:
    return place.rows(WIDTH)[0] + ADDED


def added(recipe: Recipe) -> Columns:
    """Expect one sum, replicated; pmap has one program only, for which the document's text
    is used.
    """
    values = returns(one_sum, mistakes={"the sum in a block of rank 2": sum_in_block})
    expected = twice(every(values, REPLICATED))
    if recipe.form is not AS_WRITTEN:
        return of_shard_map(expected, "the change is to shard_map's program only")
    return {LEGACY_PMAP: twice(values), NEW_PMAP: expected, SHARD_MAP: expected}


@DEFAULTS.family(
    "rewriting.unmapped-replicated.{recipe}",
    recipe=UNMAPPED,
    claim="migrate-pmap.rewrite-unmapped-and-replicated",
    title=(
        "{recipe.form.text}{recipe.changed}, an unmapped argument is added and the result is "
        "returned replicated."
    ),
    fact=found,
    expect=added,
)
def unmapped_replicated(impl: Implementation, cluster: Cluster, recipe: Recipe) -> None:
    """The body adds an unmapped row to its own, the output is replicated."""
    if impl.is_pmap:
        impl.select()
        function: Any = jax.pmap(add(), in_axes=(0, None), out_axes=None)
        cluster.twice(impl.adopt(function), cluster.mine(equal_rows(cluster)), ADDED)
        return

    def build() -> Any:
        form = recipe.form
        return shard_mapped(
            recipe.body(),
            form.mesh((COUNT,), ("i",)),
            in_specs=(form.spec("i"), form.spec()),
            out_specs=form.spec(),
            check_vma=recipe.check_vma,
        )

    cluster.twice(program(impl, build), equal_rows(cluster), ADDED)


@DEFAULTS.clause(
    "rewriting.unmapped-replicated.different-rows",
    claim="migrate-pmap.unmapped-and-replicated-pmap",
    cause="replicated-output-must-be-inferred",
    expect={
        LEGACY_PMAP: twice(returns(first_sum)),
        NEW_PMAP: twice(returns(first_sum)),
        SHARD_MAP: twice(raises(ValueError, NOT_INFERRED, phase="trace", otherwise=first_sum)),
    },
)
def different_rows(impl: Implementation, cluster: Cluster) -> None:
    """A sum of different rows is not replicated: pmap returns the first device's, shard_map refuses
    it.
    """
    function = impl.map(add(), in_axes=(0, None), out_axes=None)
    rows = impl.rows(cluster, WIDTH)
    cluster.twice(lambda: np.asarray(function(rows, ADDED)))


@described("the process's first row plus y, on each of its devices")
def sums_of_first(place: Place) -> Any:
    return np.broadcast_to(first_sum(place), (place.topology.devices_per_process, WIDTH))


@described("each device's own row plus y")
def sums_of_own(place: Place) -> Any:
    return place.rows(WIDTH) + ADDED


@DEFAULTS.clause(
    "rewriting.unmapped-replicated.replicas-agree",
    claim="migrate-pmap.unmapped-and-replicated-pmap",
    expect=everywhere(
        steps(
            call=returns(first_sum),
            replicas=returns(sums_of_first, mistakes={"each device's own sum": sums_of_own}),
        )
    ),
)
def replicas_agree(impl: Implementation, cluster: Cluster) -> None:
    """A result returned as replicated without a check, from different rows, is equal on all
    devices.
    """
    function = impl.map(add(), in_axes=(0, None), out_axes=None, check_vma=False)
    results: list[Any] = []

    def call() -> Any:
        results.append(function(impl.rows(cluster, WIDTH), ADDED))
        return np.asarray(results[0])

    def replicas() -> Any:
        shards = sorted(results[0].addressable_shards, key=lambda shard: shard.device.id)
        return np.stack([np.asarray(shard.data) for shard in shards])

    cluster.step("call", call)
    cluster.step("replicas", replicas)
