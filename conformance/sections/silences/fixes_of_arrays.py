"""Fixes that known issues name, for meshes, shardings and arrays beside a map."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.fixing import COUNT, DEFAULTS, WIDTH, Rows
from conformance.spec.columns import of_jax, of_shard_map
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.worker.bodies import doubled
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax


@dataclass(frozen=True, slots=True)
class Plain:
    """A program of JAX alone, of all devices and of rows, and NumPy's result."""

    key: str
    title: str
    fixes: str | None
    claim: str
    run: Callable[[Sequence[jax.Device], Rows], Any]
    model: Callable[[Rows], Any]


def explicit(all_devices: Sequence[jax.Device], *names: str) -> Mesh:
    """A mesh of Explicit axes: of one, or of two that split the devices in halves."""
    shape = (COUNT,) if len(names) == 1 else (2, COUNT // 2)
    kinds = (AxisType.Explicit,) * len(names)
    return Mesh(np.array(all_devices).reshape(shape), names, axis_types=kinds)


def typed_rows(all_devices: Sequence[jax.Device], rows: Rows) -> jax.Array:
    """Rows over an Explicit axis."""
    return jax.device_put(rows, NamedSharding(explicit(all_devices, "i"), P("i")))


def whole(x: jax.Array) -> NamedSharding:
    """The sharding by which each device of an array's mesh has a copy of the array."""
    sharding: Any = x.sharding
    return NamedSharding(sharding.mesh, P())


def on_mesh(x: jax.Array) -> jax.Array:
    """An array of an Explicit mesh, copied to all of its devices."""
    resharded: jax.Array = jax.sharding.reshard(x, whole(x))
    return resharded


def index_under_jit(x: jax.Array) -> Any:
    """An index of an array of an Explicit mesh, resharded to P(), under jit."""
    return jax.jit(lambda y: jax.sharding.reshard(y, whole(x))[0])(x)


def in_shardings_twice(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """Two calls of a jit with in_shardings, of rows that were on the devices in another order."""
    wanted = NamedSharding(Mesh(np.array(all_devices), ("i",)), P("i"))
    reverse = NamedSharding(Mesh(np.array(all_devices[::-1]), ("i",)), P("i"))
    function = jax.jit(lambda x: x * 2, in_shardings=wanted)
    given = jax.device_put(rows, reverse)
    return [function(jax.device_put(given, wanted)) for _ in range(2)]


def onto_another(all_devices: Sequence[jax.Device], x: Any) -> Any:
    """Put on an Explicit mesh with other names."""
    return jax.device_put(x, NamedSharding(explicit(all_devices, "k", "l"), P("k")))


def unreduced_sum(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """The sum of an array that is unreduced over the devices, with zeros on all but the last."""
    mesh = explicit(all_devices, "i")
    last = all_devices[-1]
    shards = [
        jax.device_put(rows if device == last else np.zeros_like(rows), device)
        for device in all_devices
    ]
    sharding = NamedSharding(mesh, P(unreduced={"i"}))
    x = jax.make_array_from_single_device_arrays(rows.shape, sharding, shards)
    return jax.jit(lambda x: jax.sharding.reshard(x, NamedSharding(mesh, P())))(x)


def on_auto_axes(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """Rows over an axis of a mesh that make_mesh makes of Auto axes, with warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = jax.make_mesh((COUNT,), ("i",), axis_types=(AxisType.Auto,), devices=all_devices)
    if set(mesh.axis_types) != {AxisType.Auto}:
        raise TypeError(f"the axes are {mesh.axis_types}")
    return jax.device_put(rows, NamedSharding(mesh, P("i")))


def named_as_the_map(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """A shard_map over an Explicit axis, of rows over one with another name."""
    mesh = explicit(all_devices, "i")
    x = jax.device_put(rows, NamedSharding(explicit(all_devices, "k"), P("k")))
    mapped = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    return mapped(jax.sharding.reshard(x, NamedSharding(mesh, P("i"))))


PLAIN: Mapping[str, Plain] = table(
    Plain(
        "explicit-index",
        "An index of an array on Explicit axes, after reshard to P().",
        None,
        "migrate-pmap.index-leading-dimension-sharded",
        lambda all, rows: on_mesh(typed_rows(all, rows))[0],
        lambda rows: rows[0],
    ),
    Plain(
        "explicit-index-under-jit",
        "An index of an array on Explicit axes under jit, after reshard to P().",
        None,
        "migrate-pmap.index-leading-dimension-sharded",
        lambda all, rows: index_under_jit(typed_rows(all, rows)),
        lambda rows: rows[0],
    ),
    Plain(
        "in-shardings-put-before",
        "Rows on devices in another order, put on a jit's own sharding before each call.",
        None,
        "pmap-silence.incompatible-devices-second-call",
        in_shardings_twice,
        lambda rows: [rows * 2] * 2,
    ),
    Plain(
        "another-mesh-by-the-host",
        "device_put of np.asarray of an array of an Explicit mesh to another Explicit mesh.",
        None,
        "parallel.arrays-of-several-meshes",
        lambda all, rows: onto_another(all, np.asarray(typed_rows(all, rows))),
        lambda rows: rows,
    ),
    Plain(
        "another-mesh-by-reshard",
        "device_put of an array of an Explicit mesh, resharded to P(), to another Explicit mesh.",
        None,
        "parallel.arrays-of-several-meshes",
        lambda all, rows: onto_another(all, on_mesh(typed_rows(all, rows))),
        lambda rows: rows,
    ),
    Plain(
        "unreduced-from-shards",
        "An unreduced array made of shards, of which all but one are zeros.",
        None,
        "parallel.unreduced",
        unreduced_sum,
        lambda rows: rows,
    ),
    Plain(
        "auto-axes-named",
        "make_mesh with `axis_types=(AxisType.Auto,)` gives no warning.",
        None,
        "multi-process.mesh-same-as-make-mesh",
        on_auto_axes,
        lambda rows: rows,
    ),
    Plain(
        "axis-name-of-the-map",
        "reshard puts an array of an Explicit mesh with another axis name on the map's mesh.",
        None,
        "migrate-pmap.shard-map-global-view",
        named_as_the_map,
        lambda rows: rows * 2,
    ),
    Plain(
        "single-device-sharding",
        "device_put with jax.sharding.SingleDeviceSharding.",
        None,
        "migrate-pmap.name-single-device-sharding",
        lambda all, rows: jax.device_put(rows, jax.sharding.SingleDeviceSharding(all[-1])),
        lambda rows: rows,
    ),
    Plain(
        "tree-map",
        "jax.tree.map in place of jax.tree_map.",
        None,
        "migrate-pmap.unreplicate-is-index-zero",
        lambda all, rows: jax.tree.map(lambda x: x[0], {"a": rows, "b": (rows * 2,)}),
        lambda rows: {"a": rows[0], "b": (rows[0] * 2,)},
    ),
)


@DEFAULTS.family(
    "silences.fix.{plain}",
    plain=PLAIN,
    expect=lambda plain: of_jax(twice(returns(lambda place: plain.model(place.all_rows(WIDTH))))),
)
def plain_program(impl: Implementation, cluster: Cluster, plain: Plain) -> None:
    """A program of JAX alone, twice."""
    cluster.twice(lambda rows: plain.run(cluster.devices, rows), cluster.rows(WIDTH))


@DEFAULTS.clause(
    "silences.fix.constraint-with-mesh",
    claim="pmap-silence.partly-manual-maps",
    title="`with mesh:` around a call lets a body over some axes be constrained along the others.",
    expect=of_shard_map(twice(returns(doubled(4))), "pmap has no axes beside its own"),
)
def constraint_with_mesh(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over one of two axes, whose body constrains its rows along the other."""
    kinds = (AxisType.Auto,) * 2
    mesh = Mesh(np.array(cluster.devices).reshape(2, 4), ("i", "k"), axis_types=kinds)
    mapped = jax.shard_map(
        lambda x: lax.with_sharding_constraint(x * 2, P(None, "k")),
        mesh=mesh,
        in_specs=P("i"),
        out_specs=P("i"),
        axis_names={"i"},
    )
    function = impl.adopt(jax.jit(mapped), "jit(shard_map)")

    def called(rows: Any) -> Any:
        with mesh:
            return function(rows)

    cluster.twice(called, cluster.rows(4))
