"""The tutorial on sharded computation, first half: shardings of arrays, and jit of sharded arrays.

These examples use jit alone, so no implementation is tested. Because the tutorial compares both, a
shard_map computes the same from the same sharded array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils

from conformance.sections.sharded_computation import (
    ABOUT_JIT,
    COUNT,
    P,
    line,
    mapped_by_specs,
    sharding,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import along, every, in_steps, noted, returns, sharded, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

GRID = (4, 8)  # the tutorial's array
MESH = (2, 4)  # and its devices

PIECES = "elements per device"
DEVICES = "the mesh's devices"
MATCH = "shardings match"


@described("the numbers from 0 to 31 in four rows")
def numbers(place: Place) -> Any:
    return np.arange(32, dtype=np.float32).reshape(GRID)


@described("twice the sine of each element, plus one")
def waves(place: Place) -> Any:
    return (2 * np.sin(np.arange(32)) + 1).astype(np.float32).reshape(GRID)


@described("the sums over the leading axis: 48, 52, ... 76")
def column_sums(place: Place) -> Any:
    return np.arange(48, 80, 4, dtype=np.float32)


@described("the numbers, doubled")
def numbers_doubled(place: Place) -> Any:
    return numbers(place) * 2


# --- The array and its mesh


def grid_mesh() -> jax.sharding.Mesh:
    """The tutorial's mesh, made by its helper."""
    return jax.sharding.Mesh(mesh_utils.create_device_mesh(MESH), ("x", "y"))


def grid_array(mesh: jax.sharding.Mesh) -> Any:
    """The tutorial's array, sharded over both axes of the mesh."""
    return jax.device_put(jnp.arange(32.0).reshape(GRID), sharding(mesh, "x", "y"))


def laid_out(cluster: Cluster, array: Any, mesh: jax.sharding.Mesh) -> None:
    """Note which elements each device holds, as first element and shape, in the mesh's order."""
    shards = {shard.device.id: shard.data for shard in array.addressable_shards}
    ids = [device.id for device in mesh.devices.flat]
    pieces = []
    for one in ids:
        held = shards.get(one)
        piece = None if held is None else [float(np.ravel(held)[0]), *np.shape(held)]
        pieces.append(piece)
    cluster.note(PIECES, pieces)
    cluster.note(DEVICES, sorted(ids))


def pieces(wanted: list[list[float]], text: str) -> Expectation:
    """Each device of the mesh, in its order, holds this first element and this shape."""
    return noted(PIECES, text, lambda _, seen: seen == wanted)


def named(text: str, *axes: str) -> Expectation:
    """A NamedSharding with this spec, trailing None left out."""
    return sharded(text, along(*axes))


QUARTERS = [[float(16 * row + 2 * column), 2, 2] for row in range(2) for column in range(4)]
HELD_TWICE = [[48.0 + 8 * column, 2] for _ in range(2) for column in range(4)]
HELD_ONCE = [[48.0 + 4 * column, 1] for column in range(8)]


ONE_TABLE = "the documented example has one process with eight devices"

DEFAULTS = Defaults(needs=devices(COUNT), left_out=ONE_TABLE)

IN_JIT = ("jit", "jit again")
ON_BOTH = "NamedSharding(P('x', 'y'))"


@DEFAULTS.clause(
    "sharded_computation.plain-array",
    claim="sharded-computation.plain-array-sharding",
    expect=of_jax(
        in_steps(
            every(
                returns(numbers),
                sharded(
                    "a SingleDeviceSharding on the default device",
                    lambda _, s: s["type"] == "SingleDeviceSharding" and s["devices"] == [0],
                ),
            ),
            "array",
        )
    ),
)
def plain_array(impl: Implementation, cluster: Cluster) -> None:
    """An array that was made without a sharding is on one device."""
    cluster.step("array", lambda: jnp.arange(32.0).reshape(GRID))


@DEFAULTS.clause(
    "sharded_computation.sharded-array",
    claim="sharded-computation.sharded-array",
    expect=of_jax(
        in_steps(
            every(
                returns(numbers),
                named(ON_BOTH, "x", "y"),
                pieces(QUARTERS, "two rows and two columns on each of eight devices"),
                noted(DEVICES, "all eight devices", lambda _, seen: seen == list(range(COUNT))),
            ),
            "array",
        )
    ),
)
def sharded_array(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` over a 2 by 4 mesh gives each device its piece and keeps the values."""
    mesh = grid_mesh()
    laid_out(cluster, cluster.step("array", grid_array, mesh), mesh)


_MATCHING = noted(MATCH, "result.sharding == argument.sharding", lambda _, seen: seen is True)


@DEFAULTS.clause(
    "sharded_computation.elementwise",
    claim="sharded-computation.elementwise-keeps-sharding",
    expect=of_jax(in_steps(every(returns(waves), _MATCHING, named(ON_BOTH, "x", "y")), *IN_JIT)),
)
def elementwise(impl: Implementation, cluster: Cluster) -> None:
    """The output of an elementwise jit has the sharding of its input."""
    given = grid_array(grid_mesh())
    function = jax.jit(lambda x: 2 * jnp.sin(x) + 1)
    for step in IN_JIT:
        result = cluster.step(step, function, given)
        if result is not None:
            cluster.note(MATCH, bool(result.sharding == given.sharding))


_TWICE = pieces(HELD_TWICE, "two elements on each device, each pair on two devices")


@DEFAULTS.clause(
    "sharded_computation.reduction",
    claim="sharded-computation.reduction-partially-replicated",
    expect=of_jax(
        in_steps(every(returns(column_sums), _TWICE, named("NamedSharding(P('y'))", "y")), *IN_JIT)
    ),
)
def reduction(impl: Implementation, cluster: Cluster) -> None:
    """After a sum over the first axis, pairs of devices have the same elements."""
    mesh = grid_mesh()
    given = grid_array(mesh)
    function = jax.jit(lambda x: x.sum(axis=0))
    for step in IN_JIT:
        laid_out(cluster, cluster.step(step, function, given), mesh)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The form in which the constraint's mesh sizes are passed to the tutorial's helper."""

    key: str
    text: str
    of: Any
    fixes: str | None = None


AS_WRITTEN = "sharded_computation.constraint"
SIZES = table(
    Sizes("", "`create_device_mesh(8)`, as written", COUNT),
    Sizes(".fix-tuple", "`create_device_mesh((8,))`", (COUNT,), fixes=AS_WRITTEN),
)

_AS_ASKED = noted(MATCH, "the sharding asked for, or its equal", lambda _, seen: seen is True)
_ONCE = pieces(HELD_ONCE, "one element on each of eight devices")


@DEFAULTS.family(
    "sharded_computation.constraint{sizes}",
    sizes=SIZES,
    claim="sharded-computation.with-sharding-constraint",
    title=(
        "With the mesh of {sizes.text}, `with_sharding_constraint` in the function shards "
        "the sums over all eight devices."
    ),
    fact=AS_WRITTEN,
    expect=of_jax(in_steps(every(returns(column_sums), _ONCE, _AS_ASKED), *IN_JIT)),
)
def constraint(impl: Implementation, cluster: Cluster, sizes: Sizes) -> None:
    """Sum over the first axis, constrained to be sharded along the axis of another mesh."""
    given = grid_array(grid_mesh())

    def constrained(x: Any) -> Any:
        out = x.sum(axis=0)
        # The tutorial makes the mesh in here, one axis in place of the argument's two.
        mesh = jax.sharding.Mesh(mesh_utils.create_device_mesh(sizes.of), "x")
        return jax.lax.with_sharding_constraint(out, sharding(mesh, "x"))

    function = jax.jit(constrained)
    wanted = sharding(line(), "x")
    for step in IN_JIT:
        result = cluster.step(step, function, given)
        if result is not None:
            laid_out(cluster, result, wanted.mesh)
            cluster.note(MATCH, bool(result.sharding.is_equivalent_to(wanted, result.ndim)))


# --- The same by shard_map


@dataclass(frozen=True, slots=True)
class Same:
    """A computation over both axes of the mesh, and the axes over which its result is sharded."""

    key: str
    claim: str
    body: Callable[[Any], Any]
    out: tuple[Any, ...]
    model: Model


SAME = table(
    Same("double", "sharded-array", lambda x: x * 2, ("x", "y"), numbers_doubled),
    Same(
        "elementwise",
        "elementwise-keeps-sharding",
        lambda x: 2 * jnp.sin(x) + 1,
        ("x", "y"),
        waves,
    ),
    Same(
        "reduction",
        "reduction-partially-replicated",
        lambda x: jax.lax.psum(x.sum(axis=0), "x"),
        ("y",),
        column_sums,
    ),
    Same(
        "scattered",
        "with-sharding-constraint",
        lambda x: jax.lax.psum_scatter(x.sum(axis=0), "x", tiled=True),
        (("y", "x"),),
        column_sums,
    ),
)


def lies_along(same: Same) -> Expectation:
    """Expect the sharding that its out_specs give."""
    wanted = [list(axis) if isinstance(axis, tuple) else axis for axis in same.out]
    return sharded(
        f"a NamedSharding over {same.out}",
        lambda _, s: (
            s["type"] == "NamedSharding"
            and [list(a) if isinstance(a, list | tuple) else a for a in s["spec"]] == wanted
        ),
    )


@DEFAULTS.family(
    "sharded_computation.by-shard-map.{same}",
    same=SAME,
    claim="sharded-computation.{same.claim}",
    title="A shard_map over both axes of the mesh computes the same as jit: {same}.",
    fact="sharded_computation.by-shard-map",
    expect=lambda same: of_shard_map(
        twice(every(returns(same.model), lies_along(same))), ABOUT_JIT
    ),
)
def by_shard_map(impl: Implementation, cluster: Cluster, same: Same) -> None:
    """Two calls of a shard_map over the tutorial's array and mesh."""
    mesh = grid_mesh()
    function = mapped_by_specs(impl, lambda x: same.body(x), mesh, P("x", "y"), P(*same.out))
    cluster.twice(function, grid_array(mesh))
