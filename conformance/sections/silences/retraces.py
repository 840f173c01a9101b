"""The number of traces of a mapped function: by call, argument, shape, pytree, dtype and
wrapper.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    answers,
    ask,
    control,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, not_applicable, returns
from conformance.spec.family import table
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker import child
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 8
COUNTED = "as often as it was traced after each call"

# The arguments of a call, from the place and the previous call's result.
Given = Callable[[Place, Any], tuple[Any, ...]]

DEFAULTS = Defaults(claim="pmap-silence.retraces", left_out=ONE_PROCESS_ALONE)


def host(place: Place, result: Any) -> tuple[Any, ...]:
    """Rows of NumPy's."""
    return (place.rows(WIDTH),)


def uncommitted(place: Place, result: Any) -> tuple[Any, ...]:
    """The rows on one device, committed to none."""
    return (jax.numpy.asarray(place.rows(WIDTH)),)


def own(place: Place, result: Any) -> tuple[Any, ...]:
    """Return the previous call's result."""
    return (result,)


def narrow(place: Place, result: Any) -> tuple[Any, ...]:
    """Rows of another shape."""
    return (place.rows(2),)


def integers(place: Place, result: Any) -> tuple[Any, ...]:
    """Rows of another dtype."""
    return (place.rows(WIDTH, dtype=np.int32),)


def doubles(place: Place, result: Any) -> tuple[Any, ...]:
    """Rows of float64, which become float32."""
    return (place.rows(WIDTH, dtype=np.float64),)


def dictionary(place: Place, result: Any) -> tuple[Any, ...]:
    """The rows in a dict."""
    return ({"a": place.rows(WIDTH)},)


def listed(place: Place, result: Any) -> tuple[Any, ...]:
    """The rows in a list."""
    return ([place.rows(WIDTH)],)


def fewer(place: Place, result: Any) -> tuple[Any, ...]:
    """Half of the rows."""
    return (place.rows(WIDTH)[:4],)


def static(value: int) -> Given:
    """The rows, and a static argument."""
    return lambda place, result: (place.rows(WIDTH), value)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one wrapper, and how often legacy has traced its function after each of them."""

    key: str
    text: str
    given: Sequence[Given]
    counts: tuple[int, ...]
    options: Mapping[str, Any]
    only_pmap: str = ""


NO_STATIC = "shard_map has no static arguments"
IN_BLOCKS = "shard_map has rows for all devices of its mesh"


def _calls(
    key: str,
    text: str,
    given: Sequence[Given],
    *counts: int,
    only_pmap: str = "",
    **options: Any,
) -> Calls:
    return Calls(key, text, given, counts, options, only_pmap)


CALLS: Mapping[str, Calls] = table(
    _calls("numpy", "NumPy rows", [host] * 4, 1, 1, 1, 1),
    _calls("uncommitted", "an array on one device", [uncommitted] * 3, 1, 1, 1),
    _calls("own-outputs", "its own outputs", [host, own, own, own], 1, 1, 1, 1),
    _calls(
        "mixed",
        "NumPy rows, an array on one device and its own output in turn",
        [host, uncommitted, host, own, host],
        *[1] * 5,
    ),
    _calls(
        "own-donated", "its own outputs, donated", [host, own, own, own], *[1] * 4, donate_argnums=0
    ),
    _calls("shapes", "two shapes", [host, narrow, host, narrow, host], 1, 2, 2, 2, 2),
    _calls("dtypes", "two dtypes", [host, integers, host, integers], 1, 2, 2, 2),
    _calls("narrowed", "float64, which becomes float32", [host, doubles, host], 1, 1, 1),
    _calls(
        "trees",
        "an array, a dict and a list",
        [host, dictionary, host, dictionary, listed, dictionary],
        1,
        2,
        2,
        2,
        3,
        3,
    ),
    _calls(
        "rows",
        "two different numbers of rows",
        [host, fewer, host, fewer],
        1,
        2,
        2,
        2,
        only_pmap=IN_BLOCKS,
    ),
    _calls(
        "static",
        "three static values",
        [static(2), static(2), static(3), static(2), static(3)],
        1,
        1,
        2,
        2,
        2,
        only_pmap=NO_STATIC,
        static_broadcasted_argnums=1,
    ),
)


def as_often(case: Calls) -> Columns:
    """Expect as many traces as under legacy pmap, and the values of the last call."""

    @described("legacy's counts")
    def model(place: Place) -> Any:
        return np.array(case.counts, np.int32)

    columns = everywhere(in_steps(returns(model), COUNTED))
    return columns | ({SHARD_MAP: not_applicable(case.only_pmap)} if case.only_pmap else {})


@DEFAULTS.family(
    "silences.retraces.{case}",
    case=CALLS,
    title="A mapped function called with {case.text} is traced as often as under legacy pmap.",
    needs=lambda case: devices(8) if fewer in case.given else None,  # half of them is four rows
    expect=as_often,
)
def traced(impl: Implementation, cluster: Cluster, case: Calls) -> None:
    """Calls of one wrapper, with a count of the traces of its function after each."""
    traces: list[int] = []

    def body(tree: Any, *_: Any) -> Any:
        traces.append(1)
        return jax.tree.map(lambda x: x * 2, tree)

    function = impl.map(body, **case.options)

    def calls() -> Any:
        counts, result = [], None
        for given in case.given:
            result = jax.block_until_ready(function(*given(cluster, result)))
            counts.append(len(traces))
        return np.array(counts, np.int32)

    cluster.step(COUNTED, calls)


@dataclass(frozen=True, slots=True)
class Wrappers:
    """A way to come by a second map of one function, and legacy's counts after each call."""

    key: str
    text: str
    counts: tuple[int, ...]
    clears: bool = False
    anew: bool = False


WRAPPERS: Mapping[str, Wrappers] = table(
    Wrappers("new-wrapper", "a new wrapper for each call of one function", (1, 1, 1), anew=True),
    Wrappers("cleared", "`jax.clear_caches()` before each call", (1, 2, 3), clears=True),
)


@DEFAULTS.family(
    "silences.retraces.{case}",
    case=WRAPPERS,
    title="With {case.text}, a mapped function is traced as often as under legacy pmap.",
    expect=lambda case: (
        everywhere(
            in_steps(
                returns(lambda place: np.array(case.counts, np.int32), text="legacy's counts"),
                COUNTED,
            )
        )
        | (
            {SHARD_MAP: not_applicable("jit(shard_map) of a new function is a new program")}
            if case.anew
            else {}
        )
    ),
)
def rewrapped(impl: Implementation, cluster: Cluster, case: Wrappers) -> None:
    """Three calls, by wrappers or caches made anew."""
    traces: list[int] = []

    def body(x: Any) -> Any:
        traces.append(1)
        return x * 2

    function = impl.map(body)

    def calls() -> Any:
        counts: list[int] = []
        for _ in range(3):
            if case.clears:
                jax.clear_caches()
            # Of a function that was traced before nothing is traced: the first call is the proof.
            one = impl.map(body).function if case.anew and counts else function
            jax.block_until_ready(one(cluster.rows(WIDTH)))
            counts.append(len(traces))
        return np.array(counts, np.int32)

    cluster.step(COUNTED, calls)


# --- Other devices --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Halves:
    """How a jitted function comes by the mesh of its shard_map, and how often it is traced."""

    key: str
    text: str
    counts: tuple[int, ...]
    context: bool = False


HALVES: Mapping[str, Halves] = table(
    Halves("mesh-passed", "is passed", (1, 1, 2, 2)),
    Halves("mesh-of-context", "takes from the context", (1, 1, 1, 1), context=True),
)


@DEFAULTS.family(
    "silences.retraces.{halves}",
    halves=HALVES,
    title=(
        "A jitted function with a shard_map, whose mesh it {halves.text},"
        " is called on each half of the devices, twice."
    ),
    needs=devices(8),
    expect=lambda halves: of_shard_map(
        in_steps(
            returns(
                lambda place: np.array(halves.counts, np.int32),
                text=f"traced {halves.counts} times after each call",
            ),
            COUNTED,
        ),
        "a pmap's devices are its own",
    ),
)
def on_halves(impl: Implementation, cluster: Cluster, halves: Halves) -> None:
    """One jitted function, of rows on the one half of the devices and on the other."""
    traces: list[int] = []
    spec = jax.sharding.PartitionSpec("i")

    def body(x: Any) -> Any:
        traces.append(1)
        return x * 2

    def mapped(x: Any, mesh: Any) -> Any:
        return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)(x)

    function = impl.adopt(jax.jit(mapped, static_argnums=1), "jit(shard_map)")
    within = jax.set_mesh if halves.context else nullcontext

    def calls() -> Any:
        counts = []
        for part in (cluster.devices[:4], cluster.devices[4:]):
            mesh = jax.sharding.Mesh(np.array(part), ("i",))
            rows = jax.device_put(cluster.rows(WIDTH)[:4], jax.sharding.NamedSharding(mesh, spec))
            with within(mesh):
                for _ in range(2):
                    jax.block_until_ready(function(rows, None if halves.context else mesh))
                    counts.append(len(traces))
        return np.array(counts, np.int32)

    cluster.step(COUNTED, calls)


# --- A second run ---------------------------------------------------------------------------------


MODULE = "conformance.sections.silences.cached_gradients"
TWO_RUNS = "two runs"


@DEFAULTS.clause(
    "silences.retraces.two-runs-of-a-gradient",
    deadline_s=160.0,
    expect=of_shard_map(
        every(CONTROLLED, in_steps(answers([[0, 1], [1, 0]]), TWO_RUNS)),
        "of a pmap: silences.default-name.two-runs-cache-of-a-name",
    ),
)
def two_runs_of_a_gradient(impl: Implementation, cluster: Cluster) -> None:
    """In a second run of its program the gradient of a shard_map is in the compilation cache."""
    control(impl, cluster)

    def runs() -> Any:
        with tempfile.TemporaryDirectory(prefix="conformance-cache-") as folder:
            # Another order of sets in each run, as where the variable is not set.
            environments = (child.ON_TWO_DEVICES | {"PYTHONHASHSEED": seed} for seed in ("1", "2"))
            seen = [
                child.run(MODULE, "gradient", folder, environment=each).result()
                for each in environments
            ]
        return [[run["hits"], run["misses"]] for run in seen]

    ask(cluster, TWO_RUNS, runs)
