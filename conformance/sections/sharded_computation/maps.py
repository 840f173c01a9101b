"""The tutorial on sharded computation, second half: shard_map, and one layer written in three ways.

Where the example is a program that pmap's users write too, pmap runs it in its own style. The
tutorial calls its maps without jit and says that they work inside it as well, so both are run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, every, noted, returns, sharded, steps
from conformance.sections.sharded_computation.arrays import ABOUT_JIT, COUNT, only_shard_map

SIZE = 32
LOCAL = SIZE // COUNT  # elements per device
SEED = 0  # of the tutorial's random numbers
OUTPUTS = 4

SEEN = "shapes in the body"
PIECES = "elements per device"


def line() -> Any:
    """The tutorial's mesh: all devices in a row, the axis named by a string."""
    return jax.sharding.Mesh(np.array(jax.devices()), "x")


def spec(*axes: Any) -> Any:
    """A PartitionSpec."""
    return jax.sharding.PartitionSpec(*axes)


def mine(place: Place, whole: Any) -> Any:
    """This process's part of an array whose leading axis is spread over the devices."""
    return np.split(whole, place.topology.processes)[place.process]


def waves(place: Place) -> Any:
    """twice the sine of each element, plus one"""
    return mine(place, (2 * np.sin(np.arange(SIZE)) + 1).astype(np.float32))


def doubled(place: Place) -> Any:
    """the elements, doubled"""
    return mine(place, np.arange(SIZE, dtype=np.int32) * 2)


def shard_sums(place: Place) -> Any:
    """the sum of each shard: 6, 22, 38, 54, 70, 86, 102, 118"""
    return mine(place, np.arange(6, 119, 16, dtype=np.int32))


def total(place: Place) -> Any:
    """the sum of all shards: 496"""
    return np.int32(496)


def in_rows(model: Callable[[Place], Any]) -> Callable[[Place], Any]:
    """The model as pmap returns it: one row per device."""

    def rows(place: Place) -> Any:
        return model(place).reshape(place.topology.devices_per_process, -1)

    rows.__doc__ = model.__doc__
    return rows


# --- Maps over a line of devices


def mapped(impl: Any, cluster: Any, body: Callable[[Any], Any], out: Any, jitted: bool) -> Any:
    """The tutorial's shard_map of `body` over the numbers from 0 to 31, or pmap's equivalent."""
    if impl.is_pmap:
        rows = cluster.mine(np.arange(SIZE, dtype=np.int32).reshape(COUNT, LOCAL))
        out_axes = None if out == () else 0
        return cluster.twice(impl.map(body, "x", out_axes=out_axes), rows)
    function = jax.shard_map(body, mesh=line(), in_specs=spec("x"), out_specs=spec(*out))
    adopted = impl.adopt(jax.jit(function), "jit(shard_map)") if jitted else impl.adopt(function)
    return cluster.twice(adopted, jnp.arange(SIZE))


def wave_map(impl: Any, cluster: Any, jitted: bool) -> None:
    """An elementwise function, put together again by its out_specs."""
    mapped(impl, cluster, lambda x: 2 * jnp.sin(x) + 1, ("x",), jitted)


def shape_map(impl: Any, cluster: Any, jitted: bool) -> None:
    """The body sees a device's part: its shape is noted while it is traced."""
    seen: set[tuple[int, ...]] = set()

    def body(x: Any) -> Any:
        seen.add(tuple(x.shape))
        return x * 2

    mapped(impl, cluster, body, ("x",), jitted)
    cluster.note(SEEN, sorted(list(shape) for shape in seen))


def sum_map(impl: Any, cluster: Any, jitted: bool) -> None:
    """A sum in the body, with its dimension kept."""
    mapped(impl, cluster, lambda x: jnp.sum(x, keepdims=True), ("x",), jitted)


def psum_map(impl: Any, cluster: Any, jitted: bool) -> None:
    """A psum of the sums, with an empty out_specs."""
    mapped(impl, cluster, lambda x: jax.lax.psum(x.sum(), "x"), (), jitted)


Expected = dict[str, Expectation]


def _expected(whole: Expectation, rows: Expectation, *parts: Expectation) -> Expected:
    by_pmap = every(rows, *parts)
    return {LEGACY_PMAP: by_pmap, NEW_PMAP: by_pmap, SHARD_MAP: every(whole, *parts)}


_LOCAL_SHAPE = steps(
    second_call=noted(SEEN, "shape (4,) and no other", lambda _, seen: seen == [[LOCAL]])
)


def _both_ways(name: str, claim: str, probe: Any, title: str, expect: Expected) -> None:
    clause(
        f"sharded_computation.{name}",
        claim=f"sharded-computation.{claim}",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"jitted": False},
        title=f"{title}.",
        expect={**expect, LEGACY_PMAP: ABOUT_JIT, NEW_PMAP: ABOUT_JIT},
    )(probe)
    clause(
        f"sharded_computation.{name}.inside-jit",
        claim="sharded-computation.shard-map-inside-jit",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"jitted": True},
        title=f"{title}; inside jit, or as a pmap.",
        expect=expect,
    )(probe)


_both_ways(
    "elementwise-map",
    "shard-map-elementwise",
    wave_map,
    "An elementwise map returns the values of the whole array",
    _expected(returns(waves), returns(in_rows(waves))),
)
_both_ways(
    "local-shape",
    "shard-map-local-shape",
    shape_map,
    "The body sees 4 of the 32 elements",
    _expected(returns(doubled), returns(in_rows(doubled)), _LOCAL_SHAPE),
)
_both_ways(
    "sum-per-shard",
    "sum-per-shard",
    sum_map,
    "A sum in the body gives one sum per device",
    _expected(returns(shard_sums), returns(in_rows(shard_sums))),
)
_both_ways(
    "psum",
    "psum-across-shards",
    psum_map,
    "A psum with out_specs P() gives one sum of all",
    _expected(returns(total), returns(total)),
)


# --- The older place of the name

IMPORTED: dict[str, tuple[Callable[[Any], Any], tuple[str, ...], Callable[[Place], Any]]] = {
    "elementwise": (lambda x: 2 * jnp.sin(x) + 1, ("x",), waves),
    "sum-per-shard": (lambda x: jnp.sum(x, keepdims=True), ("x",), shard_sums),
    "psum": (lambda x: jax.lax.psum(x.sum(), "x"), (), total),
}


def imported(impl: Any, cluster: Any, name: str) -> None:
    """`from jax.experimental.shard_map import shard_map`, then a map made by it."""
    body, out, _ = IMPORTED[name]

    def run(x: Any) -> Any:
        make = importlib.import_module("jax.experimental.shard_map").shard_map
        whole = make(lambda x: body(x), mesh=line(), in_specs=spec("x"), out_specs=spec(*out))
        return impl.adopt(whole, "shard_map")(x)

    cluster.twice(run, np.arange(SIZE, dtype=np.int32))


for _name, (_body, _out, _model) in IMPORTED.items():
    clause(
        f"sharded_computation.import.{_name}",
        claim="sharded-computation.shard-map-import",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"name": _name},
        title=f"shard_map imported from jax.experimental.shard_map: {_name}.",
        expect=only_shard_map(returns(_model)),
    )(imported)


# --- One layer, three ways


def layer_data() -> tuple[Any, Any, Any]:
    """The tutorial's input, weights and bias: float64, from a seeded generator."""
    random = np.random.default_rng(SEED)
    x = random.normal(size=(SIZE,))
    return x, random.normal(size=(SIZE, OUTPUTS)), random.normal(size=(OUTPUTS,))


def layer_model(place: Place) -> Any:
    """the layer's four outputs: 0.0214, 0.8931, 0.5989, 0.9774"""
    x, weights, bias = layer_data()
    return (1 / (1 + np.exp(-(x @ weights + bias)))).astype(np.float32)


def layer(x: Any, weights: Any, bias: Any) -> Any:
    """The layer as it is written for one device."""
    return jax.nn.sigmoid(x @ weights + bias)


def summed_layer(x: Any, weights: Any, bias: Any) -> Any:
    """The layer as it is written for one shard of the input and the weights."""
    return jax.nn.sigmoid(jax.lax.psum(x @ weights, "x") + bias)


def by_shard_map() -> Any:
    """The layer in a shard_map, decorated as in the tutorial."""
    decorate = partial(
        jax.shard_map,
        mesh=line(),
        in_specs=(spec("x"), spec("x", None), spec(None)),
        out_specs=spec(None),
    )
    return decorate(lambda *given: summed_layer(*given))


def spread(array: Any) -> Any:
    """The array with its leading axis over all devices."""
    return jax.device_put(array, jax.sharding.NamedSharding(line(), spec("x")))


def layer_way(impl: Any, cluster: Any, way: str, jitted: bool, dtype: str) -> None:
    """The layer in one of the ways, twice, then by a shard_map inside jit."""
    x, weights, bias = (array.astype(dtype) for array in layer_data())

    def fresh(*given: Any) -> Any:
        return layer(*given)  # caches are kept by function: each case has one of its own

    def constrained(x: Any, weights: Any, bias: Any) -> Any:
        over = jax.sharding.NamedSharding(line(), spec("x"))
        x = jax.lax.with_sharding_constraint(x, over)
        return layer(x, jax.lax.with_sharding_constraint(weights, over), bias)

    function: Any = constrained
    if way == "sharded-data":
        function = fresh
    elif way == "shard-map":
        function = impl.adopt(by_shard_map())
    if jitted:
        function = jax.jit(function)

    def run() -> Any:
        if way == "sharded-data":
            return function(spread(x), spread(weights), bias)
        return function(x, weights, bias)

    for step in ("this way", "this way again"):
        cluster.step(step, run)
    cluster.twice(impl.adopt(jax.jit(by_shard_map()), "jit(shard_map)"), x, weights, bias)


AS_WRITTEN = "float64"  # which is what the tutorial's generator gives

for _way, _claim, _jitted, _dtype, _title in (
    ("sharded-data", "layer-sharded-data", False, AS_WRITTEN, "sharded data, without jit"),
    ("sharded-data", "layer-sharded-data", True, AS_WRITTEN, "sharded data, in one jit"),
    ("sharded-data", "layer-sharded-data", True, "float32", "sharded float32 data, in one jit"),
    ("constraint", "layer-constraint", False, AS_WRITTEN, "constraints, without jit"),
    ("constraint", "layer-constraint", True, AS_WRITTEN, "constraints, in one jit"),
    ("shard-map", "layer-shard-map", False, AS_WRITTEN, "a shard_map and a psum"),
):
    clause(
        f"sharded_computation.layer.{_way}"
        + (".jit" if _jitted else "")
        + ("" if _dtype == AS_WRITTEN else f".{_dtype}"),
        claim=f"sharded-computation.{_claim}",
        needs=devices(COUNT),
        topologies=ONE_AND_FOUR,
        parameters={"way": _way, "jitted": _jitted, "dtype": _dtype},
        title=f"The layer with {_title}.",
        expect=only_shard_map(returns(layer_model)),
    )(layer_way)


def replicated(place: Place, found: Any) -> bool:
    """A NamedSharding whose spec names no axis."""
    return found["type"] == "NamedSharding" and not any(found["spec"])


@clause(
    "sharded_computation.layer.mapped",
    claim="sharded-computation.layer-shard-map",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: returns(layer_model),
        NEW_PMAP: every(returns(layer_model), sharded("replicated", replicated)),
        SHARD_MAP: every(returns(layer_model), sharded("replicated", replicated)),
    },
)
def layer_mapped(impl: Any, cluster: Any) -> None:
    """The layer as a map over parts of the input, in the style of each implementation."""
    x, weights, bias = (np.float32(array) for array in layer_data())
    parts = x.reshape(COUNT, LOCAL), weights.reshape(COUNT, LOCAL, OUTPUTS)
    function = impl.map(
        lambda *given: summed_layer(*given), "x", in_axes=(0, 0, None), out_axes=None
    )
    given = [impl.given(cluster.mine(part), "x") for part in parts]
    cluster.twice(function, *given, bias)
