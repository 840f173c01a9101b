"""The tutorial on sharded computation, at its end: one layer, written in three ways.

Sharded data, constraints inside the function, or a shard_map: all must give the same outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.sections.sharded_computation import (
    ABOUT_JIT,
    COUNT,
    LOCAL,
    SIZE,
    P,
    line,
    sharding,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import Columns, of_jax, of_shard_map
from conformance.spec.expectation import every, in_steps, returns, sharded, twice
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation

SEED = 0  # of the tutorial's random numbers
OUTPUTS = 4
STEPS = ("this way", "this way again")


def layer_data() -> tuple[Any, Any, Any]:
    """The tutorial's input, weights and bias: float64, from a seeded generator."""
    random = np.random.default_rng(SEED)
    x = random.normal(size=(SIZE,))
    return x, random.normal(size=(SIZE, OUTPUTS)), random.normal(size=(OUTPUTS,))


@described("the layer's four outputs: 0.0214, 0.8931, 0.5989, 0.9774")
def layer_model(place: Place) -> Any:
    x, weights, bias = layer_data()
    return (1 / (1 + np.exp(-(x @ weights + bias)))).astype(np.float32)


def layer(x: Any, weights: Any, bias: Any) -> Any:
    """The layer as it is written for one device."""
    return jax.nn.sigmoid(x @ weights + bias)


def summed_layer(x: Any, weights: Any, bias: Any) -> Any:
    """The layer as it is written for one shard of the input and the weights."""
    return jax.nn.sigmoid(jax.lax.psum(x @ weights, "x") + bias)


def constrained_layer(x: Any, weights: Any, bias: Any) -> Any:
    """The layer, which says itself where its arguments are to lie."""
    spread = sharding(line(), "x")
    x = jax.lax.with_sharding_constraint(x, spread)
    return layer(x, jax.lax.with_sharding_constraint(weights, spread), bias)


def layer_by_shard_map() -> Any:
    """The layer in a shard_map, decorated as in the tutorial."""
    decorate = partial(
        jax.shard_map,
        mesh=line(),
        in_specs=(P("x"), P("x", None), P(None)),
        out_specs=P(None),
    )
    return decorate(lambda *given: summed_layer(*given))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compute the layer: `make(impl)` gives a function that no other case has called.

    Where `spread`, the input and the weights are given with their leading axis over all devices.
    """

    key: str
    claim: str
    text: str
    make: Callable[[Implementation], Callable[..., Any]]
    spread: bool = False
    jitted: bool = False
    dtype: str = "float64"  # which is what the tutorial's generator gives
    mapped: bool = False

    def columns(self) -> Columns:
        """Return the columns: shard_map's if the way maps, otherwise JAX's."""
        expected = in_steps(returns(layer_model), *STEPS)
        return of_shard_map(expected, ABOUT_JIT) if self.mapped else of_jax(expected)


SHARDED_DATA = "layer-sharded-data"
CONSTRAINT = "layer-constraint"
BY_SHARD_MAP = "layer-shard-map"

WAYS = table(
    Way(
        "sharded-data",
        SHARDED_DATA,
        "sharded data, without jit",
        lambda impl: lambda *given: layer(*given),
        spread=True,
    ),
    Way(
        "sharded-data.jit",
        SHARDED_DATA,
        "sharded data, in one jit",
        lambda impl: lambda *given: layer(*given),
        spread=True,
        jitted=True,
    ),
    Way(
        "sharded-data.jit.float32",
        SHARDED_DATA,
        "sharded float32 data, in one jit",
        lambda impl: lambda *given: layer(*given),
        spread=True,
        jitted=True,
        dtype="float32",
    ),
    Way(
        "constraint",
        CONSTRAINT,
        "constraints, without jit",
        lambda impl: lambda *given: constrained_layer(*given),
    ),
    Way(
        "constraint.jit",
        CONSTRAINT,
        "constraints, in one jit",
        lambda impl: lambda *given: constrained_layer(*given),
        jitted=True,
    ),
    Way(
        "shard-map",
        BY_SHARD_MAP,
        "a shard_map and a psum",
        lambda impl: impl.adopt(layer_by_shard_map()),
        mapped=True,
    ),
    Way(
        "shard-map.jit",
        BY_SHARD_MAP,
        "a shard_map and a psum, in one jit",
        lambda impl: impl.adopt(jax.jit(layer_by_shard_map()), "jit(shard_map)"),
        mapped=True,
    ),
)


@family(
    "sharded_computation.layer.{way}",
    way=WAYS,
    claim="sharded-computation.{way.claim}",
    title="The document's neural network layer with {way.text}.",
    fact=lambda way: f"sharded_computation.{way.claim}",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=lambda way: way.columns(),
)
def layer_way(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """The layer in one of the ways, twice."""
    x, weights, bias = (array.astype(way.dtype) for array in layer_data())
    made = way.make(impl)
    function = jax.jit(made) if way.jitted else made

    def run() -> Any:
        if not way.spread:
            return function(x, weights, bias)
        over = sharding(line(), "x")
        return function(jax.device_put(x, over), jax.device_put(weights, over), bias)

    for step in STEPS:
        cluster.step(step, run)


REPLICATED = sharded(
    "replicated",
    lambda _, found: found["type"] == "NamedSharding" and not any(found["spec"]),
)


@clause(
    "sharded_computation.layer.mapped",
    claim=f"sharded-computation.{BY_SHARD_MAP}",
    fact=f"sharded_computation.{BY_SHARD_MAP}",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: twice(returns(layer_model)),
        NEW_PMAP: twice(every(returns(layer_model), REPLICATED)),
        SHARD_MAP: twice(every(returns(layer_model), REPLICATED)),
    },
)
def layer_mapped(impl: Implementation, cluster: Cluster) -> None:
    """The layer as a mapped function over parts of the input, in the style of each
    implementation.
    """
    x, weights, bias = (np.float32(array) for array in layer_data())
    parts = x.reshape(COUNT, LOCAL), weights.reshape(COUNT, LOCAL, OUTPUTS)
    function = impl.map(
        lambda *given: summed_layer(*given), "x", in_axes=(0, 0, None), out_axes=None
    )
    given = [impl.given(cluster.mine(array), "x") for array in parts]
    cluster.twice(function, *given, bias)
