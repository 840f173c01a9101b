"""`The context mesh ... should match`: maps inside maps, and the fixes that leave nested pmap."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.sections.errors import INNER, OUTER, grid
from conformance.sections.errors.nested_maps import (
    NESTED,
    grid_summed,
    mesh_of_two_axes,
    nested,
    refused,
)
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import Columns, everywhere, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import not_applicable, raises, returns, twice
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, ONE_AND_FOUR, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

SILENCE = "pmap-silence.nested-pmap-variants"

DEFAULTS = Defaults(
    claim="migrate-pmap.context-mesh", needs=devices(OUTER * INNER), cause="nested-pmap-refused"
)


@described("the grid, doubled")
def grid_doubled(place: Place) -> Any:
    return grid(place) * 2


NO_DEVICES = raises(
    ValueError,
    r"^Nested pmap with explicit devices argument\.$",
    phase="lower",
    otherwise=grid_doubled,
)


def box(place: Place) -> Any:
    """One row per device of three axes, shape `(2, 2, 2, 3)`."""
    return grid(place).reshape(2, 2, 2, 3)


def shard_map_of_pmap(impl: Implementation, cluster: Cluster) -> Any:
    """Return a jitted shard_map over OUTER devices, in whose body a pmap doubles the rows."""
    inner, mesh, spec = impl.map(double(), "j"), impl.mesh("i", cluster.devices[:OUTER]), P("i")
    return jax.jit(
        jax.shard_map(lambda x: inner(x[0])[None], mesh=mesh, in_specs=spec, out_specs=spec)
    )


def remedied(model: Model) -> Columns:
    """A fix that leaves pmap has only one implementation to run under."""
    return of_shard_map(returns(model), "the fix replaces pmap by shard_map")


@DEFAULTS.clause("errors.context-mesh.different-names", fact=NESTED, expect=nested(grid_summed))
def different_names(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap, each with its own axis name, and a psum over both."""
    inner = impl.map(lambda x: jax.lax.psum(x, ("i", "j")), "j")
    cluster.twice(impl.map(inner, "i"), grid(cluster))


@DEFAULTS.clause("errors.context-mesh.unnamed", fact=NESTED, expect=nested(grid_doubled))
def unnamed(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap, neither with an axis name."""
    impl.select()
    inner = impl.adopt(jax.pmap(double()))
    cluster.twice(impl.adopt(jax.pmap(inner)), grid(cluster))


@DEFAULTS.clause("errors.context-mesh.same-name", fact=NESTED, expect=nested(grid_doubled))
def same_name(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap, both with the same axis name."""
    inner = impl.map(double(), "i")
    cluster.twice(impl.map(inner, "i"), grid(cluster))


@DEFAULTS.clause(
    "errors.context-mesh.vmap-between",
    fact=NESTED,
    expect=nested(lambda place: grid(place)[:, None] * 2),
)
def vmap_between(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a vmap inside a pmap."""
    inner = impl.map(double(), "j")
    cluster.twice(impl.map(jax.vmap(inner), "i"), grid(cluster)[:, None])


@DEFAULTS.clause("errors.context-mesh.under-scan", fact=NESTED, expect=nested(grid_doubled))
def under_scan(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a scan inside a pmap."""
    inner = impl.map(double(), "j")

    def body(x: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (inner(carry), None), x, None, length=1)[0]

    cluster.twice(impl.map(body, "i"), grid(cluster))


@DEFAULTS.clause("errors.context-mesh.inside-shard-map", expect=nested(grid_doubled))
def inside_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a shard_map over an axis of other devices."""
    cluster.twice(shard_map_of_pmap(impl, cluster), grid(cluster))


@DEFAULTS.clause(
    "errors.context-mesh.one-row-inside-shard-map",
    expect=nested(lambda place: grid(place)[:, :1] * 2),
)
def one_row_inside_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """A pmap of one row inside a shard_map over an axis of other devices."""
    cluster.twice(shard_map_of_pmap(impl, cluster), grid(cluster)[:, :1])


@DEFAULTS.clause(
    "errors.context-mesh.shard-map-inside",
    claim=SILENCE,
    needs=devices(8),
    left_out="the body uses its own device's row only",
    expect=nested(doubled(3)),
)
def shard_map_inside(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over a mesh of one device inside a pmap."""
    mesh = impl.mesh("j", cluster.devices[:1])
    inner = jax.shard_map(double(), mesh=mesh, in_specs=P(), out_specs=P())
    cluster.twice(impl.map(lambda x: inner(x), "i"), cluster.rows(3))


@DEFAULTS.clause(
    "errors.context-mesh.shard-map-inside-over-all",
    claim=SILENCE,
    cause="shard-map-inside-pmap-refused",
    needs=devices(8),
    left_out="the body uses its own device's row only",
    expect={
        LEGACY_PMAP: not_applicable(
            "it traces the shard_map and raises, after which nothing proves which pmap ran: the "
            "program of the known issue shows it"
        ),
        NEW_PMAP: twice(refused(doubled(3))),
        SHARD_MAP: not_applicable("the clause is about shard_map inside pmap"),
    },
)
def shard_map_inside_over_all(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over a mesh of all devices, whose inputs are replicated, inside a pmap."""
    inner = jax.shard_map(double(), mesh=impl.mesh("j"), in_specs=P(), out_specs=P())
    cluster.twice(impl.map(lambda x: inner(x), "i"), cluster.rows(3))


@DEFAULTS.clause("errors.context-mesh.under-jit", fact=NESTED, expect=nested(grid_doubled))
def under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap inside a jit."""
    outer = impl.map(impl.map(double(), "j"), "i")
    cluster.twice(jax.jit(lambda x: outer(x)), grid(cluster))


@DEFAULTS.clause(
    "errors.context-mesh.three-levels",
    fact=NESTED,
    needs=devices(8),
    expect=nested(lambda place: np.broadcast_to(box(place).sum((0, 1, 2)), (2, 2, 2, 3))),
)
def three_levels(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap inside a pmap, and a psum over all three axes."""
    inner = impl.map(lambda x: jax.lax.psum(x, ("i", "j", "k")), "k")
    cluster.twice(impl.map(impl.map(inner, "j"), "i"), box(cluster))


@DEFAULTS.clause("errors.context-mesh.inside-cond", fact=NESTED, expect=nested(grid_doubled))
def inside_cond(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a branch of `cond` inside a pmap."""
    inner = impl.map(double(), "j")

    def body(x: Any) -> Any:
        return jax.lax.cond(x[0, 0] > 0, inner, lambda y: y, x)

    cluster.twice(impl.map(body, "i"), grid(cluster))


@DEFAULTS.clause("errors.context-mesh.inside-while", fact=NESTED, expect=nested(grid_doubled))
def inside_while(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside the body of `while_loop` inside a pmap."""
    inner = impl.map(double(), "j")

    def body(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, inner(c[1])), (0, x))[1]

    cluster.twice(impl.map(body, "i"), grid(cluster))


@DEFAULTS.clause(
    "errors.context-mesh.inner-devices",
    claim="migrate-pmap.nested-pmap-unsupported",
    expect=nested(grid_doubled) | {LEGACY_PMAP: NO_DEVICES},
)
def inner_devices(impl: Implementation, cluster: Cluster) -> None:
    """A pmap inside a pmap, the inner one with `devices=`, which legacy pmap refuses too."""
    inner = impl.map(double(), "j", devices=cluster.devices[:INNER])
    cluster.twice(impl.map(inner, "i"), grid(cluster))


@DEFAULTS.clause(
    "errors.context-mesh.several-processes",
    needs=processes(2, devices_per_process=INNER),
    topologies=FOUR_PROCESSES,
    expect=nested(lambda place: place.rows(3)[:, None] * 2),
)
def several_processes(impl: Implementation, cluster: Cluster) -> None:
    """A pmap of one row inside a pmap over all devices, in several processes."""
    inner = impl.map(double(), "j")
    cluster.twice(impl.map(inner, "i"), cluster.rows(3)[:, None])


@clause(
    "errors.context-mesh.under-set-mesh",
    # Not a nesting, so that the document is silent about pmap here.
    claim=SILENCE,
    needs=devices(OUTER * INNER),
    expect={
        LEGACY_PMAP: returns(doubled(3)),
        NEW_PMAP: returns(doubled(3)),
        SHARD_MAP: refused(doubled(3)),
    },
)
def under_set_mesh(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function that is called under `jax.set_mesh` of another mesh."""
    function = impl.map(double(), "i")
    rows = cluster.rows(3)
    with jax.set_mesh(impl.mesh("other", cluster.devices)):
        cluster.twice(function, rows)


@clause(
    "errors.context-mesh.under-own-mesh",
    claim=SILENCE,
    needs=devices(OUTER * INNER),
    expect=everywhere(returns(doubled(3))),
)
def under_own_mesh(impl: Implementation, cluster: Cluster) -> None:
    """A mapped while_loop that is called under `jax.set_mesh` of a mesh like its own."""

    def body(x: Any) -> Any:
        start = (0, x * 0)
        return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + x), start)[1]

    function = impl.map(body, "i")
    rows = cluster.rows(3)
    with jax.set_mesh(impl.mesh("i", cluster.devices)):
        cluster.twice(function, rows)


@clause(
    "errors.context-mesh.fix-one-shard-map",
    claim="migrate-pmap.fix-one-shard-map-2d",
    fixes="errors.context-mesh.different-names",
    needs=devices(OUTER * INNER),
    topologies=ONE_AND_FOUR,
    expect=remedied(grid_summed),
)
def fix_one_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """One shard_map over a mesh with two axes, one for each axis of the input."""
    spec = P("i", "j")
    function = jax.shard_map(
        lambda x: jax.lax.psum(x, ("i", "j")) + 0 * x,
        mesh=mesh_of_two_axes(cluster),
        in_specs=spec,
        out_specs=spec,
    )
    cluster.twice(impl.adopt(jax.jit(function), "jit(shard_map)"), grid(cluster))


@clause(
    "errors.context-mesh.fix-nested-shard-map",
    claim="migrate-pmap.fix-nested-shard-map",
    fixes="errors.context-mesh.different-names",
    needs=devices(OUTER * INNER),
    topologies=ONE_AND_FOUR,
    expect=remedied(grid_summed),
)
def fix_nested_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over one axis inside a shard_map over the other."""

    def outer(x: Any) -> Any:
        inner = jax.shard_map(
            lambda y: jax.lax.psum(y, ("i", "j")) + 0 * y,
            in_specs=P(None, "j"),
            out_specs=P(None, "j"),
            axis_names={"j"},
        )
        return inner(x)

    function = jax.shard_map(
        outer, mesh=mesh_of_two_axes(cluster), in_specs=P("i"), out_specs=P("i"), axis_names={"i"}
    )
    cluster.twice(impl.adopt(jax.jit(function), "jit(shard_map)"), grid(cluster))


@clause(
    "errors.context-mesh.fix-smap",
    claim="migrate-pmap.fix-smap",
    fixes="errors.context-mesh.different-names",
    needs=devices(OUTER * INNER),
    topologies=ONE_AND_FOUR,
    expect=remedied(grid_summed),
)
def fix_smap(impl: Implementation, cluster: Cluster) -> None:
    """`jax.smap` over one axis inside `jax.smap` over the other."""
    inner = jax.smap(
        lambda y: jax.lax.psum(y, ("i", "j")) + 0 * y, in_axes=1, out_axes=1, axis_name="j"
    )
    function = jax.smap(inner, in_axes=0, out_axes=0, axis_name="i")
    with jax.set_mesh(mesh_of_two_axes(cluster)):
        cluster.twice(impl.adopt(jax.jit(function), "smap"), grid(cluster))
