"""The page on parallel programming: meshes in context, and what Explicit axes refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.sharded_computation import ABOUT_JIT, COUNT, P, sharding
from conformance.sections.sharded_computation.typed_programs import (
    GRID,
    LEFT,
    ONE_TABLE,
    RIGHT,
    SQUARE,
    X,
    mesh_of,
    put,
)
from conformance.spec.arrays import returns_array, returns_host
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import along, every, noted, raises, returns, sharded, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(needs=devices(COUNT), left_out=ONE_TABLE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A program that JAX refuses on Explicit axes; `values` are those it would have."""

    key: str
    claim: str
    text: str
    run: Callable[[], Any]
    error: str
    pattern: str
    values: NDArray[Any]


def _constrained(x: Any) -> Any:
    return jax.jit(lambda y: jax.lax.with_sharding_constraint(y * 2, P("Y", "X")))(x)


def _other_size(x: Any) -> Any:
    axes = (jax.sharding.AxisType.Explicit,)
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((4,), ("A",), axes)):
        return x * 2


REFUSALS: Mapping[str, Refusal] = table(
    Refusal(
        "contraction",
        "contraction-ambiguous",
        "jnp.dot(x, y), both sharded along the contracted dimension",
        lambda: jnp.dot(put(LEFT, None, "X"), put(RIGHT, "X", None)),
        "ShardingTypeError",
        "Contracting dimensions are sharded and it is ambiguous how the output should be sharded"
        ".* via the `out_sharding` parameter",
        LEFT @ RIGHT,
    ),
    Refusal(
        "conflict",
        "conflicting-operands",
        "x + y, sharded over one axis along different dimensions",
        lambda: put(SQUARE, "X", None) + put(SQUARE, None, "X"),
        "ShardingTypeError",
        r"add operation with inputs: f32\[4@X,4\], f32\[4,4@X\] produces an illegally sharded "
        r"result: f32\[4@X,4@X\]",
        SQUARE * 2,
    ),
    Refusal(
        "constraint",
        "constraint-hints",
        "with_sharding_constraint(x, P('Y', 'X')) of P('X', 'Y')",
        lambda: _constrained(put(X, "X", "Y")),
        "AssertionError",
        "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`",
        X * 2,
    ),
    Refusal(
        "abstract-mesh",
        "abstract-mesh-of-equal-size",
        "an abstract mesh of half the size, under jit",
        lambda: jax.jit(lambda x: _other_size(x))(put(X, "X", "Y")),
        "ValueError",
        "use_abstract_mesh cannot change the size of the mesh",
        X * 2,
    ),
)


def _refused(refusal: Refusal) -> Expectation:
    return twice(
        raises(refusal.error, refusal.pattern, phase="trace", otherwise=lambda _: refusal.values)
    )


@DEFAULTS.family(
    "sharded_computation.refused.{refusal}",
    refusal=REFUSALS,
    claim=lambda refusal: f"parallel.{refusal.claim}",
    title="Refused on Explicit axes: `{refusal.text}`",
    expect=lambda refusal: of_jax(_refused(refusal)),
)
def refused(impl: Implementation, cluster: Cluster, refusal: Refusal) -> None:
    """A program of the page that raises, on its mesh."""
    with jax.set_mesh(mesh_of(GRID)):
        cluster.twice(refusal.run)


# --- Meshes ---------------------------------------------------------------------------------------


@described("yes")
def yes(place: Place) -> Any:
    return np.array(True)


@dataclass(frozen=True, slots=True)
class Maker:
    """One way to make a mesh without saying what its axes are."""

    key: str
    text: str
    make: Callable[[], Any]


MAKERS: Mapping[str, Maker] = table(
    Maker(
        "make-mesh", "jax.make_mesh((4, 2), ('X', 'Y'))", lambda: jax.make_mesh((4, 2), ("X", "Y"))
    ),
    Maker(
        "constructor",
        "jax.sharding.Mesh(devices, ('X', 'Y'))",
        lambda: jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("X", "Y")),
    ),
)


def _kinds(place: Place, seen: Any) -> bool:
    return bool(seen == ["Explicit", "Explicit"])


@DEFAULTS.family(
    "sharded_computation.mesh.explicit.{maker}",
    maker=MAKERS,
    claim="parallel.make-mesh-explicit",
    title="The axes of `{maker.text}` are Explicit",
    expect=of_jax(every(twice(returns(yes)), noted("axes", "both Explicit", _kinds))),
)
def kinds_of_axes(impl: Implementation, cluster: Cluster, maker: Maker) -> None:
    """A mesh that is made without axis types."""
    for name in ("first call", "second call"):
        made: list[Any] = []
        cluster.step(name, lambda made=made: np.array(not made.append(maker.make())))
        cluster.note("axes", [kind.name for kind in made[0].axis_types])


@DEFAULTS.clause(
    "sharded_computation.mesh.get",
    claim="parallel.get-mesh",
    expect=of_jax(
        steps(
            at_the_top_level=returns_host(yes),
            under_jit=raises(ValueError, "`get_mesh` can only be used outside of `jax.jit`"),
        )
    ),
)
def get_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`jax.get_mesh()` at the top level returns the mesh that was set; under jit it is refused."""
    mesh = mesh_of(GRID)
    with jax.set_mesh(mesh):
        cluster.step("at the top level", lambda: np.array(jax.get_mesh() == mesh))
        cluster.step("under jit", jax.jit(lambda x: (x, jax.get_mesh())[0]), X)


@described("the array, from the sums of its shards along Y")
def summands(place: Place) -> Any:
    return X


@dataclass(frozen=True, slots=True)
class Source:
    """The array that is put: an `array` on the mesh, or a NumPy array."""

    key: str
    text: str
    array: Callable[[], Any]


SOURCES: Mapping[str, Source] = table(
    Source("sharded", "an array that is sharded over both axes", lambda: put(X, "X", "Y")),
    Source("numpy", "a NumPy array", lambda: X),
)


@DEFAULTS.family(
    "sharded_computation.unreduced.{source}",
    source=SOURCES,
    claim="parallel.unreduced",
    title="The shards of {source.text}, put unreduced over Y: they add up along Y to the array.",
    expect=of_jax(twice(returns_host(summands))),
)
def unreduced(impl: Implementation, cluster: Cluster, source: Source) -> None:
    """An array that is put unreduced over Y."""

    def summed() -> Any:
        array = jax.device_put(source.array(), P("X", None, unreduced={"Y"}))
        shards = {shard.device.id: np.asarray(shard.data) for shard in array.addressable_shards}
        rows = np.array(jax.devices()).reshape(4, 2)
        return np.concatenate([sum(shards[device.id] for device in row) for row in rows])

    with jax.set_mesh(mesh_of(GRID)):
        cluster.twice(summed)


@DEFAULTS.clause(
    "sharded_computation.all-reduce",
    claim="parallel.reduction-communicates",
    expect=of_jax(twice(returns_host(yes))),
)
def all_reduce(impl: Implementation, cluster: Cluster) -> None:
    """A compiled sum over the sharded dimension contains an all-reduce; a sum over the other does
    not.
    """

    def communicates(axis: int) -> bool:
        x = put(X, "X", None)
        return "all-reduce(" in jax.jit(lambda x: x.sum(axis)).lower(x).compile().as_text()

    with jax.set_mesh(mesh_of(GRID)):
        cluster.twice(lambda: np.array(communicates(0) and not communicates(1)))


# --- shard_map ------------------------------------------------------------------------------------


@described("this process's rows of the product")
def product(place: Place) -> Any:
    return np.split(LEFT @ RIGHT, place.topology.processes)[place.process]


MAPPED = of_shard_map(
    every(
        twice(returns_array(product, lambda _: (8, 16))),
        twice(sharded("NamedSharding along X", along("X"))),
    ),
    ABOUT_JIT,
)


@clause(
    "sharded_computation.map-from-context",
    claim="parallel.shard-map-from-context",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=MAPPED,
)
@clause(
    "sharded_computation.map-scatters",
    claim="parallel.shard-map-scatters",
    title="psum_scatter of partial products in a shard_map gives the whole product",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=MAPPED,
)
def map_from_context(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map with only out_specs, with the mesh in context."""

    as_decorator = jax.shard_map(out_specs=P("X", None))
    matmul = as_decorator(lambda x, y: jax.lax.psum_scatter(jnp.dot(x, y), "X", tiled=True))
    mesh = mesh_of(GRID)
    operands = (
        jax.device_put(LEFT, sharding(mesh, None, "X")),
        jax.device_put(RIGHT, sharding(mesh, "X", None)),
    )
    with jax.set_mesh(mesh):
        cluster.twice(impl.adopt(matmul), *operands)
