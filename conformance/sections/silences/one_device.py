"""Maps over one device, as programs are tried out, and over an axis of one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_jax, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]

CLAIM = "pmap-silence.maps-over-one-device"
COUNT = 8  # devices
WIDTH = 3  # of a row
ONE_AXIS = "a pmap is over one axis"

DEFAULTS = Defaults(
    needs=devices(COUNT),
    left_out="multi_controller.subsets tests several processes",
)


@dataclass(frozen=True, slots=True)
class Use:
    """A body that is mapped over one device; NumPy makes `model` of its row."""

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Callable[[Rows], Any]
    out_axes: int | None = 0


USES: Mapping[str, Use] = table(
    Use("psum", "psum", lambda x: lax.psum(x, "i"), lambda a: a),
    Use(
        "pmean-whole",
        "pmean, with out_axes=None",
        lambda x: lax.pmean(x, "i"),
        lambda a: a[0],
        None,
    ),
    Use("row-whole", "the row, with out_axes=None", lambda x: x * 2, lambda a: a[0] * 2, None),
    Use(
        "gather-whole",
        "all_gather, with out_axes=None",
        lambda x: lax.all_gather(x, "i"),
        lambda a: a,
        None,
    ),
    Use(
        "scan",
        "a scan that adds the row to zeros",
        lambda x: lax.scan(lambda s, _: (s + x, None), jnp.zeros(WIDTH), length=2)[0],
        lambda a: a * 2,
    ),
    Use("ppermute", "ppermute to itself", lambda x: lax.ppermute(x, "i", [(0, 0)]), lambda a: a),
)


@DEFAULTS.family(
    "silences.one-device.{use}",
    use=USES,
    claim=CLAIM,
    title="A mapped function over one device: {use.text}.",
    fact=lambda use: f"silences.one-device.{'whole' if use.out_axes is None else 'rows'}",
    expect=lambda use: everywhere(
        twice(
            returns(
                lambda place: use.model(place.all_rows(WIDTH)[:1]),
                text=f"what NumPy gives for {use.text}",
            )
        )
    ),
)
def one_device(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A map over the first device."""
    function = impl.map(lambda x: use.body(x), out_axes=use.out_axes, devices=cluster.devices[:1])
    cluster.twice(function, cluster.rows(WIDTH)[:1])


# --- An axis of one device ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """A body over the axes i, of all devices, and j, of one; `model` is of the whole array."""

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Callable[[Rows], Any]
    spec: tuple[str, ...] = ("i", "j")
    out: tuple[str, ...] = ("i",)
    check_vma: bool = True


AXES: Mapping[str, Axis] = table(
    Axis("psum", "a psum over it", lambda x: lax.psum(x, "j"), lambda a: a),
    Axis(
        "psum-both",
        "a psum over both axes",
        lambda x: lax.psum(x, ("i", "j")),
        lambda a: a.sum(0, keepdims=True),
        out=(),
    ),
    Axis(
        "psum-equal",
        "a psum over it of an input whose spec does not name it",
        lambda x: lax.psum(x, "j"),
        lambda a: a,
        spec=("i",),
    ),
    Axis("unnamed", "out_specs that do not name it", lambda x: x * 2, lambda a: a * 2),
    Axis(
        "unnamed-unchecked",
        "out_specs that do not name it, under check_vma=False",
        lambda x: x * 2,
        lambda a: a * 2,
        check_vma=False,
    ),
    Axis(
        "gathered",
        "a tiled all_gather over it",
        lambda x: lax.all_gather(x, "j", tiled=True),
        lambda a: a,
    ),
    Axis(
        "index",
        "axis_index of it",
        lambda x: x + lax.axis_index("j"),
        lambda a: a,
        spec=("i",),
    ),
)


@DEFAULTS.family(
    "silences.one-device-axis.{axis}",
    axis=AXES,
    claim=CLAIM,
    title="A shard_map over a mesh with an axis of one device: {axis.text}.",
    fact=lambda axis: f"silences.one-device-axis{'' if axis.check_vma else '.unchecked'}",
    fixes=lambda axis: None if axis.check_vma else "silences.one-device-axis.unnamed",
    expect=lambda axis: of_shard_map(
        twice(
            returns(
                lambda place: axis.model(place.all_rows(WIDTH)),
                text=f"what NumPy gives for {axis.text}",
            )
        ),
        ONE_AXIS,
    ),
)
def one_device_axis(impl: Implementation, cluster: Cluster, axis: Axis) -> None:
    """A shard_map over eight devices in one column."""
    mesh = jax.sharding.Mesh(np.array(cluster.devices)[:, None], ("i", "j"))
    function = jax.shard_map(
        lambda x: axis.body(x),
        mesh=mesh,
        in_specs=P(*axis.spec),
        out_specs=P(*axis.out),
        check_vma=axis.check_vma,
    )
    cluster.twice(impl.adopt(jax.jit(function), "jit(shard_map)"), cluster.rows(WIDTH))


EXPLICIT = jax.sharding.AxisType.Explicit


@DEFAULTS.clause(
    "silences.one-device-axis.reshaped",
    claim="parallel.shardings-propagate",
    expect=of_jax(
        twice(
            returns(
                lambda place: np.tile(place.all_rows(WIDTH), 2)[None],
                text="the rows, in one more axis, each twice",
            )
        )
    ),
)
def reshaped(impl: Implementation, cluster: Cluster) -> None:
    """An array over an Explicit axis of one device is reshaped, then joined with itself."""
    grid = np.array(cluster.devices)[None]
    mesh = jax.sharding.Mesh(grid, ("j", "i"), axis_types=(EXPLICIT, EXPLICIT))

    def program(x: Any) -> Any:
        with jax.set_mesh(mesh):
            flat = jax.device_put(x.reshape(1, -1), P("j", "i"))
            split = jax.jit(lambda x: x.reshape(1, COUNT, WIDTH))(flat)
            named = jax.sharding.reshard(split, P("j", "i", None))
            return jnp.concatenate((named, split), axis=-1)

    cluster.twice(program, cluster.rows(WIDTH))


def rows_in_a_column(cluster: Cluster) -> tuple[jax.sharding.Mesh, Any]:
    """Return an Explicit mesh whose second axis has one device, and all numbers over both axes."""
    grid = np.array(cluster.devices)[:, None]
    mesh = jax.sharding.Mesh(grid, ("i", "j"), axis_types=(EXPLICIT, EXPLICIT))
    column = cluster.rows(WIDTH).reshape(-1, 1)
    return mesh, jax.device_put(column, jax.sharding.NamedSharding(mesh, P("i", "j")))


@described("the rows in a column each, twice")
def columns_twice(place: Place) -> Any:
    return np.tile(place.all_rows(WIDTH)[..., None], (1, 2, 1))


@DEFAULTS.clause(
    "silences.one-device-axis.reshaped-before-it",
    claim="parallel.shardings-propagate",
    expect=of_jax(twice(returns(columns_twice))),
)
def reshaped_before_it(impl: Implementation, cluster: Cluster) -> None:
    """An array is split before an Explicit axis of one device, then joined with itself."""
    mesh, column = rows_in_a_column(cluster)

    def program(x: Any) -> Any:
        with jax.set_mesh(mesh):
            split = jax.jit(lambda x: x.reshape(COUNT, WIDTH, 1))(x)
            named = jax.sharding.reshard(split, P("i", None, "j"))
            return jnp.concatenate((named, split), axis=1)

    cluster.twice(program, column)


@DEFAULTS.clause(
    "silences.one-device-axis.fix-reshaped-before-it",
    claim="parallel.shardings-propagate",
    fixes="silences.one-device-axis.reshaped-before-it",
    title="A sharding that `jnp.reshape` is given keeps an Explicit axis of one device.",
    expect=of_jax(twice(returns(columns_twice))),
)
def reshaped_with_a_sharding(impl: Implementation, cluster: Cluster) -> None:
    """The array is split by a reshape that is given the sharding of its result."""
    mesh, column = rows_in_a_column(cluster)

    def program(x: Any) -> Any:
        with jax.set_mesh(mesh):
            spec = P("i", None, "j")
            split = jax.jit(lambda x: jnp.reshape(x, (COUNT, WIDTH, 1), out_sharding=spec))(x)
            named = jax.sharding.reshard(split, spec)
            return jnp.concatenate((named, split), axis=1)

    cluster.twice(program, column)


# --- vmap's spmd_axis_name ------------------------------------------------------------------------


@described("for each index of the vmapped axis the sum of all rows")
def summed_by_vmap(place: Place) -> Any:
    return np.stack([place.all_rows(WIDTH).sum(0), place.all_rows(WIDTH).sum(0) * 10])


@dataclass(frozen=True, slots=True)
class Named:
    """A name that vmap is given as `spmd_axis_name`."""

    key: str
    text: str
    name: str


NAMED: Mapping[str, Named] = table(
    Named("own-axis", "the mapped axis", "i"),
    Named("no-axis", "not the mapped axis", "v"),
)


@DEFAULTS.family(
    "silences.spmd-axis-name.inside.{named}",
    named=NAMED,
    claim="pmap-silence.spmd-axis-name",
    title="A vmap in the body, whose spmd_axis_name is {named.text}.",
    fact="silences.spmd-axis-name.inside",
    left_out="the body uses its own device's row only",
    expect=everywhere(
        twice(returns(lambda place: place.all_rows(WIDTH) * 2, text="each row, doubled"))
    ),
)
def spmd_inside(impl: Implementation, cluster: Cluster, named: Named) -> None:
    """A body with a vmap whose axis is given a name for the compiler."""
    function = impl.map(lambda x: jax.vmap(lambda y: y * 2, spmd_axis_name=named.name)(x))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


@DEFAULTS.family(
    "silences.spmd-axis-name.around.{named}",
    named=NAMED,
    claim="pmap-silence.spmd-axis-name",
    title="A vmap of a mapped function, whose spmd_axis_name is {named.text}.",
    fact="silences.spmd-axis-name.around",
    left_out="multi_controller.map tests several processes",
    expect=everywhere(
        twice(
            returns(
                lambda place: np.repeat(summed_by_vmap(place)[:, None], COUNT, 1),
                text="the sums of all rows, on each device",
            )
        )
    ),
)
def spmd_around(impl: Implementation, cluster: Cluster, named: Named) -> None:
    """Apply vmap with an spmd_axis_name to a mapped function."""
    function = impl.map(lambda x: lax.psum(x, "i"))
    rows = cluster.rows(WIDTH)
    cluster.twice(
        jax.vmap(lambda x: function(x), spmd_axis_name=named.name), np.stack([rows, rows * 10])
    )
