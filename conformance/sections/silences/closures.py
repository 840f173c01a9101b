"""Bodies that close over an array: where its shards are, and what kind of mesh they are on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
WEIGHTS = np.array([2, 3, 5], np.float32)
WITHOUT_JIT = "a pmap is always compiled"
EXPLICIT_MESH = "a pmap makes its own mesh"

DEFAULTS = Defaults(
    claim="pmap-silence.closed-over-arrays",
    needs=devices(COUNT),
    left_out="in several processes, no process has the whole array",
)


@dataclass(frozen=True, slots=True)
class Closed:
    """An array that a body closes over: `put` of a NumPy array of one row per device."""

    key: str
    text: str
    put: Callable[[Any, list[jax.Device]], Any]


def _over(*, name: str, explicit: bool = False, reverse: bool = False, spec: Any = None) -> Any:
    """Put an array over all devices, on its own mesh."""

    def put(x: Any, all: list[jax.Device]) -> Any:
        kind = AxisType.Explicit if explicit else AxisType.Auto
        ordered = np.array(all[::-1] if reverse else all)
        mesh = jax.sharding.Mesh(ordered, (name,), axis_types=(kind,))
        return jax.device_put(x, NamedSharding(mesh, P(name) if spec is None else spec))

    return put


ARRAYS: Mapping[str, Closed] = table(
    Closed("replicated", "an array that is replicated over its mesh", _over(name="i", spec=P())),
    Closed("sharded", "an array that is sharded over its mesh", _over(name="i")),
    Closed("other-name", "an array that is sharded over an axis of another name", _over(name="k")),
    Closed(
        "other-order",
        "an array that is sharded over its devices in reverse order",
        _over(name="i", reverse=True),
    ),
    Closed("device-3", "an array that is committed to device 3", lambda x, all: _one(x, all[3])),
    Closed(
        "explicit", "an array that is sharded over Explicit axes", _over(name="i", explicit=True)
    ),
    Closed(
        "explicit-replicated",
        "an array that is replicated over Explicit axes",
        _over(name="i", explicit=True, spec=P()),
    ),
)


# Those that a shard_map without jit, over Explicit axes, or as an argument may take otherwise.
WITHOUT: Mapping[str, Closed] = {
    key: ARRAYS[key] for key in ("sharded", "other-order", "device-3", "explicit")
}
ON_EXPLICIT: Mapping[str, Closed] = {key: ARRAYS[key] for key in ("sharded", "explicit")}
PASSED: Mapping[str, Closed] = {key: ARRAYS[key] for key in ("explicit", "explicit-replicated")}


def _one(x: Any, device: jax.Device) -> Any:
    return jax.device_put(x, device)


def data() -> Any:
    """Return the array that is closed over: one row per device."""
    return np.arange(COUNT * WIDTH, dtype=np.float32).reshape(COUNT, WIDTH)


@described("each row times the sum of what is closed over")
def scaled(place: Place) -> Any:
    return place.all_rows(WIDTH) * data().sum()


RIGHT = twice(returns(scaled))


@DEFAULTS.family(
    "silences.closed-over.{array}",
    array=ARRAYS,
    title="The body of a mapped function closes over {array.text}.",
    fact="silences.closed-over",
    expect=everywhere(RIGHT),
)
def closed_over(impl: Implementation, cluster: Cluster, array: Closed) -> None:
    """A map whose body closes over an array."""
    captured = array.put(data(), cluster.devices)
    function = impl.map(lambda x: x * captured.sum())
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


@DEFAULTS.family(
    "silences.closed-over.{array}.without-jit",
    array=WITHOUT,
    title="The body of a shard_map without jit closes over {array.text}.",
    fact="silences.closed-over.without-jit",
    expect=of_shard_map(RIGHT, WITHOUT_JIT),
)
def without_jit(impl: Implementation, cluster: Cluster, array: Closed) -> None:
    """A shard_map without jit whose body closes over an array."""
    captured = array.put(data(), cluster.devices)
    function = jax.shard_map(
        lambda x: x * captured.sum(), mesh=impl.mesh(), in_specs=P("i"), out_specs=P("i")
    )
    cluster.twice(impl.adopt(function), impl.given(cluster.rows(WIDTH)))


@DEFAULTS.family(
    "silences.closed-over.{array}.passed",
    array=PASSED,
    title="A mapped function is called with {array.text} as an unmapped argument.",
    fact="silences.closed-over.passed",
    fixes="silences.closed-over.{array}",
    expect=everywhere(RIGHT),
)
def passed(impl: Implementation, cluster: Cluster, array: Closed) -> None:
    """JAX's own advice: the array is an argument."""
    function = impl.map(lambda x, whole: x * whole.sum(), in_axes=(0, None))
    rows = impl.given(cluster.rows(WIDTH))
    cluster.twice(function, rows, array.put(data(), cluster.devices))


@DEFAULTS.family(
    "silences.closed-over.{array}.explicit-map",
    array=ON_EXPLICIT,
    title="The body of a shard_map over an Explicit axis closes over {array.text}.",
    fact="silences.closed-over.explicit-map",
    expect=of_shard_map(RIGHT, EXPLICIT_MESH),
)
def explicit_map(impl: Implementation, cluster: Cluster, array: Closed) -> None:
    """A shard_map over a mesh with an Explicit axis whose body closes over an array."""
    captured = array.put(data(), cluster.devices)
    mesh = jax.make_mesh((COUNT,), ("i",), axis_types=(AxisType.Explicit,))
    function = jax.shard_map(
        lambda x: x * captured.sum(), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    rows = jax.device_put(cluster.rows(WIDTH), NamedSharding(mesh, P("i")))
    cluster.twice(impl.adopt(jax.jit(function), "jit(shard_map)"), rows)


# --- A row of an output, read in the body ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """How a body takes the first row of an output that it closes over."""

    key: str
    text: str
    read: Callable[[Any], Any]


READINGS: Mapping[str, Reading] = table(
    Reading("index", "`out[0]`", lambda out: out[0]),
    Reading("slice", "`out[0:1]`", lambda out: out[0:1]),
    Reading("at", "`out.at[0].get()`", lambda out: out.at[0].get()),
    Reading("take", "`jnp.take(out, 0, axis=0)`", lambda out: jnp.take(out, 0, axis=0)),
    Reading("traced-index", "`out[i]` with a traced i", lambda out: out[lax.axis_index("i") * 0]),
)


@described("each row plus the first row of what is closed over")
def shifted(place: Place) -> Any:
    return place.all_rows(WIDTH) + data()[0]


@DEFAULTS.family(
    "silences.closed-over.row.{reading}",
    reading=READINGS,
    title="A body takes the first row of an output that it closes over, by {reading.text}.",
    fact="silences.closed-over.row",
    expect=everywhere(twice(returns(shifted))),
)
def row_of_output(impl: Implementation, cluster: Cluster, reading: Reading) -> None:
    """A map whose body reads a row of another map's output."""
    output = impl.map(lambda x: x)(data())
    function = impl.map(lambda x: x + reading.read(output).reshape(WIDTH))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


@DEFAULTS.clause(
    "silences.closed-over.row-read-before",
    title="A body closes over the first row of an output, `out[0]`, read before it is mapped.",
    fixes="silences.closed-over.row.index",
    expect=everywhere(twice(returns(shifted))),
)
def row_read_before(impl: Implementation, cluster: Cluster) -> None:
    """The row is read outside the body."""
    first = impl.map(lambda x: x)(data())[0]
    cluster.twice(impl.map(lambda x: x + first), impl.given(cluster.rows(WIDTH)))


# --- A traced array -------------------------------------------------------------------------------


@described("each row times the weights")
def weighted(place: Place) -> Any:
    return place.all_rows(WIDTH) * WEIGHTS


@described("the sum of all rows, which is the derivative by the weights")
def derived(place: Place) -> Any:
    return place.all_rows(WIDTH).sum(0)


@dataclass(frozen=True, slots=True)
class Traced:
    """A transformation of a program of weights and rows, whose map closes over the weights."""

    key: str
    transform: Callable[[Callable[..., Any]], Callable[..., Any]]
    model: Model


TRACED: Mapping[str, Traced] = table(
    Traced("jit", jax.jit, weighted),
    Traced("grad", lambda program: jax.grad(lambda w, x: program(w, x).sum()), derived),
)


@DEFAULTS.family(
    "silences.closed-over.traced.{traced}",
    traced=TRACED,
    title="Under {traced} the body of a map closes over an argument of the whole program.",
    fact="silences.closed-over.traced",
    expect=lambda traced: everywhere(twice(returns(traced.model))),
)
def closed_over_traced(impl: Implementation, cluster: Cluster, traced: Traced) -> None:
    """A map that is made and called in a program, whose argument its body closes over."""

    def program(weights: Any, rows: Any) -> Any:
        return impl.map(lambda x: weights * x)(rows)

    cluster.twice(traced.transform(program), WEIGHTS, impl.given(cluster.rows(WIDTH)))
