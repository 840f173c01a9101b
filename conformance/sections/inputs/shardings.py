"""Inputs that shard_map accepts, silently reshards or refuses, by their sharding and the mesh.

One section of the document calls a mismatched input a hard error, another says that it is
resharded. Both are claims, so each input is tested for both, jitted and not, on meshes of both axis
types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.inputs import own, sharding_of, unless_shard_map
from conformance.spec.arrays import returns_array
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, raises, returns, sharded
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import add, addend, double
from conformance.worker.protocols import Cluster, Implementation

ABOUT_SHARD_MAP = "the claim is about shard_map"

# Errors that name the mismatch; one of the compiler's verifier does not help a user.
IDS = r"device ids \[\d+(, \d+)*\] on platform \w+"
OTHER_DEVICES = rf"Received incompatible devices for jitted computation\. .* {IDS} and .* {IDS}"
OTHER_SPECS = r"in_specs passed to shard_map: P\('i', None\) does not match the specs of the input"


@described("this process's rows, doubled")
def all_doubled(place: Place) -> Any:
    return place.rows(place.topology.devices) * 2


def _by_rows(place: Place, sharding: Mapping[str, Any]) -> bool:
    return (
        sharding["type"] == "NamedSharding"
        and sharding["spec"][:1] == ["i"]
        and not any(sharding["spec"][1:])
        and len(sharding["devices"]) == place.topology.devices
        and sharding["devices"] == sorted(sharding["devices"])  # the mesh's own order
    )


def on_other_devices(model: Model) -> Expectation:
    """Expect the error that names the devices of the input and of the shard_map."""
    return raises(ValueError, OTHER_DEVICES, phase="lower", otherwise=model)


RESHARDED = every(
    returns(all_doubled), sharded("sharded by rows over all devices of the mesh", _by_rows)
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The wrapper around shard_map, by the name under which it is called."""

    key: str
    text: str
    wrap: Callable[[Any], Any]


WRAPPERS: Mapping[str, Wrapper] = table(
    Wrapper("jit", "jit(shard_map)", jax.jit),
    Wrapper("plain", "shard_map", lambda function: function),
)


@dataclass(frozen=True, slots=True)
class Axes:
    """The axis type of the shard_map's mesh, and the other one."""

    key: str
    type: str
    other: str


AXES: Mapping[str, Axes] = table(
    Axes("auto", "Auto", other="Explicit"),
    Axes("explicit", "Explicit", other="Auto"),
)


def mesh_of(
    axis_type: str, devices: Sequence[jax.Device], axis_name: str = "i"
) -> jax.sharding.Mesh:
    """A 1-D mesh whose axis is Auto or Explicit."""
    kind = getattr(jax.sharding.AxisType, axis_type)
    return jax.sharding.Mesh(np.array(devices), (axis_name,), axis_types=(kind,))


def on_mesh(rows: Any, mesh: jax.sharding.Mesh, *spec: str | None) -> Any:
    """`rows` on a mesh, by a spec."""
    return jax.device_put(rows, sharding_of(mesh, *spec))


@dataclass(frozen=True, slots=True)
class Layout:
    """A sharding of the same rows: `lay(rows, devices, axes)`, for a mesh of type `axes`.

    Layouts of one `fact` vary one finding.
    """

    key: str
    text: str
    lay: Callable[[Any, list[Any], Axes], Any]
    fact: str


MISMATCHED: Mapping[str, Layout] = table(
    Layout(
        "numpy",
        "is a NumPy array",
        lambda rows, devices, axes: rows,
        fact="never-placed",
    ),
    Layout(
        "uncommitted",
        "is an uncommitted jax.Array",
        lambda rows, devices, axes: jnp.asarray(rows),
        fact="never-placed",
    ),
    Layout(
        "one-device",
        "is committed to one device",
        lambda rows, devices, axes: jax.device_put(rows, jax.local_devices()[0]),
        fact="one-device",
    ),
    Layout(
        "other-order",
        "is sharded over the mesh's devices in reverse order",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.type, devices[::-1]), "i"),
        fact="other-devices",
    ),
    Layout(
        "subset",
        "is sharded over half of the mesh's devices",
        lambda rows, devices, axes: on_mesh(
            rows, mesh_of(axes.type, devices[: len(devices) // 2]), "i"
        ),
        fact="other-devices",
    ),
    Layout(
        "other-spec",
        "is on the mesh, sharded along its other dimension",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.type, devices), None, "i"),
        fact="other-spec",
    ),
    Layout(
        "replicated",
        "is on the mesh, replicated",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.type, devices)),
        fact="other-spec",
    ),
    Layout(
        "replicated-other-type",
        "is replicated over a mesh of the same devices with the other axis type",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.other, devices)),
        fact="other-axis-type",
    ),
)

# Each device already has its part: nothing may be moved.
ALIGNED: Mapping[str, Layout] = table(
    Layout(
        "same",
        "has the mesh and spec of the shard_map",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.type, devices), "i"),
        fact="same",
    ),
    Layout(
        "other-axis-name",
        "is already sharded as required, on a mesh with another axis name",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.type, devices, "k"), "k"),
        fact="other-axis-name",
    ),
    Layout(
        "other-axis-type",
        "is already sharded as required, on a mesh with the other axis type",
        lambda rows, devices, axes: on_mesh(rows, mesh_of(axes.other, devices), "i"),
        fact="other-axis-type",
    ),
)

TITLE = "`{wrapper.text}` on a mesh of {axes.type} axes, whose input {layout.text}"


def where_jitted(wrapper: Wrapper) -> tuple[str, ...]:
    """In several processes the jitted one only."""
    return ONE_AND_TWO if wrapper.key == "jit" else ONE_PROCESS


def left_out(wrapper: Wrapper) -> str:
    """Return why the variant without jit is tested in one process only."""
    return "" if wrapper.key == "jit" else "the tests under jit cover several processes"


def refused(axes: Axes, layout: Layout) -> Expectation:
    """Expect the error that names the mismatch: the devices, or on Explicit axes each
    input's type.
    """
    if axes.key == "auto" or layout.fact == "other-devices":
        return on_other_devices(all_doubled)
    if layout.fact == "one-device":  # either says that it is elsewhere; from 0.9.1 on the second
        return raises(ValueError, f"{OTHER_DEVICES}|{OTHER_SPECS}", otherwise=all_doubled)
    return raises(ValueError, OTHER_SPECS, otherwise=all_doubled)


def mismatch(axes: Axes, layout: Layout) -> str:
    """The fact of a layout, which both contradictory claims are about."""
    return f"inputs.mismatched.{axes.key}.{layout.fact}"


@family(
    "inputs.refused.{wrapper}.{axes}.{layout}",
    wrapper=WRAPPERS,
    axes=AXES,
    layout=MISMATCHED,
    claim="migrate-pmap.input-mismatch-hard-error",
    title=TITLE,
    fact=mismatch,
    topologies=where_jitted,
    left_out=left_out,
    needs=devices(2),
    expect=lambda axes, layout: of_shard_map(refused(axes, layout), ABOUT_SHARD_MAP),
)
@family(
    "inputs.resharded.{wrapper}.{axes}.{layout}",
    wrapper=WRAPPERS,
    axes=AXES,
    layout=MISMATCHED,
    claim="migrate-pmap.input-mismatch-reshards",
    title=TITLE,
    fact=mismatch,
    topologies=where_jitted,
    left_out=left_out,
    needs=devices(2),
    expect=of_shard_map(RESHARDED, ABOUT_SHARD_MAP),
)
@family(
    "inputs.aligned.{wrapper}.{axes}.{layout}",
    wrapper=WRAPPERS,
    axes=AXES,
    layout=ALIGNED,
    claim="migrate-pmap.shard-map-global-view",
    title=TITLE,
    fact="inputs.aligned.{axes}.{layout}",
    topologies=where_jitted,
    left_out=left_out,
    needs=devices(2),
    expect=of_shard_map(RESHARDED, ABOUT_SHARD_MAP),
)
def call(
    impl: Implementation, cluster: Cluster, wrapper: Wrapper, axes: Axes, layout: Layout
) -> None:
    """One shard_map over all devices, its input laid in one of many ways."""
    rows, devices = cluster.all_rows(cluster.topology.devices), cluster.devices
    mesh, spec = mesh_of(axes.type, devices), jax.sharding.PartitionSpec("i")
    function = jax.shard_map(double(), mesh=mesh, in_specs=spec, out_specs=spec)
    mapped = impl.adopt(wrapper.wrap(function), wrapper.text)
    cluster.twice(mapped, layout.lay(rows, devices, axes))


# --- Inputs that pmap shards implicitly -----------------------------------------------------------

NEVER_PLACED = "inputs.implicit"  # the fact that such an argument is placed, however it is mapped

DEFAULTS = Defaults(
    claim="migrate-pmap.pmap-reshards-inputs", topologies=ONE_AND_TWO, fact=NEVER_PLACED
)

COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """An input that was never put on a device, made from a NumPy array."""

    key: str
    text: str
    of: Callable[[Any], Any]


KINDS: Mapping[str, Kind] = table(
    Kind("numpy", "a NumPy array", np.asarray),
    Kind("uncommitted", "an uncommitted jax.Array", jnp.asarray),
)


def implicit(model: Model) -> Columns:
    """Both pmaps shard what they are given; shard_map is said not to."""
    return unless_shard_map(returns_array(model, own(COLUMNS)), on_other_devices(model))


@described("this process's rows, tripled")
def tripled(place: Place) -> Any:
    return place.rows(COLUMNS) * 3


@DEFAULTS.family(
    "inputs.implicit.{kind}.in-axes-0",
    kind=KINDS,
    title="The input is {kind.text}, mapped over its first axis",
    expect=implicit(tripled),
)
def mapped_first(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """The mapped axis comes first."""
    rows = kind.of(impl.rows(cluster, COLUMNS))
    cluster.twice(impl.map(lambda x: x * 3), rows)


@DEFAULTS.family(
    "inputs.implicit.{kind}.in-axes-1",
    kind=KINDS,
    title="The input is {kind.text}, mapped over its second axis",
    expect=implicit(tripled),
)
def mapped_last(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """The mapped axis comes last (`in_axes=1`)."""
    columns = kind.of(impl.rows(cluster, COLUMNS).T)
    cluster.twice(impl.map(lambda x: x * 3, in_axes=1), columns)


@described("this process's rows, plus the unmapped argument")
def first_added(place: Place) -> Any:
    return place.rows(COLUMNS) + addend(COLUMNS)


@DEFAULTS.family(
    "inputs.implicit.{kind}.in-axes-none",
    kind=KINDS,
    title="The input is {kind.text}, not mapped over",
    expect=implicit(first_added),
)
def unmapped(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """Pass one unmapped argument (`in_axes=(0, None)`), and one that is sharded as required."""
    added = kind.of(addend(COLUMNS))
    rows = jax.device_put(impl.rows(cluster, COLUMNS), impl.sharding())
    cluster.twice(impl.map(add(), in_axes=(0, None)), rows, added)
