"""The document's two remedies for `x[0]`, what they give and what they move; and what they replace.

Option 1 never makes the leading dimension (`out_axes=None`, `jax.device_put` with an empty spec);
option 2 reads the shard that a process has anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.indexing import (
    INTEGERS,
    NO_COLLECTIVE,
    ROW,
    STAYS,
    Form,
    access,
    accessed,
    double_sum,
    double_summed,
    first_of_all,
    first_row,
    moves,
    named,
    output,
    over_the_map,
    replicated,
)
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import everywhere, unless_legacy
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import (
    TWICE,
    every,
    in_steps,
    not_applicable,
    noted,
    raises,
    returns,
    sharded,
    steps,
)
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import Body, add, double
from conformance.worker.protocols import Cluster, Implementation

OF_PMAP = not_applicable("the statement is about the outputs of jax.pmap")
OF_NEW = not_applicable("the statement is about arrays of the new jax.pmap")
INDEX = "indexing.integer.zero"

LOCAL = Form("local", "`x.addressable_shards[0].data.squeeze(0)`", lambda x: shard_of(x).squeeze(0))
FETCHED = Form("fetched", "`np.asarray(x)`", np.asarray)

DEFAULTS = Defaults(topologies=ONE_AND_FOUR, fixes=INDEX)


def shard_of(x: Any) -> Any:
    """The first shard that this process holds, in the order of the rows."""
    return x.addressable_shards[0].data


A_PMAP_SHARDING = sharded(
    "a PmapSharding over all mapped devices",
    lambda place, s: s["type"] == "PmapSharding" and over_the_map(place, LEGACY_PMAP, s),
)


# --- C1: the type of sharding --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutAxes:
    """A value of out_axes, with the result of a mapped function that has it and the
    result's spec.
    """

    key: str
    value: int | None
    spec: tuple[str | None, ...]
    body: Callable[[], Body]
    model: Model


OUT_AXES: Mapping[str, OutAxes] = table(
    OutAxes("0", 0, ("i",), double, lambda place: place.rows(*ROW) * 2),
    OutAxes("1", 1, (None, "i"), double, lambda place: np.moveaxis(place.rows(*ROW) * 2, 0, 1)),
    OutAxes("none", None, (), double_sum, double_summed),
)


def of_a(sharding: Expectation, out_axes: OutAxes) -> Expectation:
    """The right values, so sharded."""
    right = returns(out_axes.model, text="the doubled rows, or their sum")
    return in_steps(every(sharding, right), *TWICE)


@family(
    "indexing.named-sharding.out-axes-{out_axes}",
    out_axes=OUT_AXES,
    claim="migrate-pmap.named-sharding",
    title=(
        "An output with out_axes={out_axes.value} has the NamedSharding that follows "
        "from it; under legacy pmap a PmapSharding."
    ),
    fact="indexing.named-sharding",
    cause="outputs-in-a-named-sharding",
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: lambda out_axes: of_a(A_PMAP_SHARDING, out_axes),
        NEW_PMAP: lambda out_axes: of_a(named(NEW_PMAP, *out_axes.spec), out_axes),
        SHARD_MAP: OF_PMAP,
    },
)
def twice(impl: Implementation, cluster: Cluster, out_axes: OutAxes) -> None:
    """A map's output with these out_axes."""
    mapped = impl.map(out_axes.body(), out_axes=out_axes.value)
    cluster.twice(mapped, impl.given(cluster.rows(*ROW)))


# --- C3: option 1 --------------------------------------------------------------------------------


@DEFAULTS.clause(
    "indexing.out-axes-none.sharding",
    claim="migrate-pmap.out-axes-none",
    expect={
        LEGACY_PMAP: OF_NEW,
        NEW_PMAP: in_steps(every(replicated(NEW_PMAP), returns(double_summed)), *TWICE),
        SHARD_MAP: in_steps(every(replicated(SHARD_MAP), returns(double_summed)), *TWICE),
    },
)
def out_axes_none(impl: Implementation, cluster: Cluster) -> None:
    """An output of out_axes=None is replicated over all devices, without a mesh axis."""
    mapped = impl.map(double_sum(), out_axes=None)
    cluster.twice(mapped, impl.given(cluster.rows(*ROW)))


# Uses of an output of out_axes=None: none may need another device.
READINGS: Mapping[str, Form] = table(
    Form("cost", "`np.asarray(x)`", np.asarray),
    Form("device-get", "`jax.device_get(x)`", jax.device_get, lambda x: x),
    Form("shard", "`x.addressable_shards[0].data`", lambda x: shard_of(x), lambda x: x),
    Form("element", "`float(x[0, 1])`", lambda x: np.float32(float(x[0, 1]))),
    Form("operation", "`x + 1`", lambda x: x + 1),
)


@DEFAULTS.family(
    "indexing.out-axes-none.{reading}",
    reading=READINGS,
    claim="migrate-pmap.out-axes-none-cheap",
    title="{reading.text} of an output of out_axes=None does not communicate between devices.",
    fact="indexing.out-axes-none.cost",
    expect=lambda reading: everywhere(
        accessed(
            NO_COLLECTIVE,
            returns(
                lambda place: reading.by_numpy(double_summed(place)),
                text=f"what NumPy gives for {reading.text}",
            ),
        )
    ),
)
def out_axes_none_cost(impl: Implementation, cluster: Cluster, reading: Form) -> None:
    """An output of out_axes=None, read or used."""
    access(cluster, "access", reading, output(impl, cluster, double_sum(), out_axes=None))


@described("one row of ones")
def ones(place: Place) -> Any:
    return np.ones(ROW, np.float32)


@described("the rows, and one")
def added(place: Place) -> Any:
    return place.rows(*ROW) + 1


@DEFAULTS.clause(
    "indexing.device-put.empty-spec",
    claim="migrate-pmap.device-put-empty-spec",
    expect=everywhere(
        every(
            steps(put=returns(ones), map=returns(added)),
            steps(put=sharded("replicated, without a mesh axis", lambda _, s: not any(s["spec"]))),
        ),
    ),
)
def device_put(impl: Implementation, cluster: Cluster) -> None:
    """jax.device_put with an empty spec adds no dimension, and a mapped function accepts the result
    with in_axes=None.
    """
    put = cluster.step("put", jax.device_put, np.ones(ROW, np.float32), impl.sharding(axis=None))
    adding = impl.map(add(), in_axes=(0, None))
    cluster.step("map", adding, impl.given(cluster.rows(*ROW)), put)


# --- C4 and C5: option 2, and what neither leaves ------------------------------------------------


@described("this process's first row, with the leading dimension")
def one_row(place: Place) -> Any:
    return place.rows(*ROW)[:1] * 2


@DEFAULTS.clause(
    "indexing.addressable-shard.shapes",
    claim="migrate-pmap.addressable-shard-shapes",
    expect=everywhere(steps(shard=returns(one_row), row=returns(first_row))),
)
def shard_shapes(impl: Implementation, cluster: Cluster) -> None:
    """The first shard has shape (1, 3, 4), and (3, 4) after squeeze."""
    shard = cluster.step("shard", shard_of, output(impl, cluster))
    if shard is not None:
        cluster.step("row", lambda: shard.squeeze(0))


@DEFAULTS.clause(
    "indexing.addressable-shard.cost",
    claim="migrate-pmap.addressable-shard-no-communication",
    expect=everywhere(accessed(STAYS, returns(first_row))),
)
def shard_cost(impl: Implementation, cluster: Cluster) -> None:
    """Reading the first shard does not communicate."""
    access(cluster, "access", LOCAL, output(impl, cluster))


NO_GATHER = moves(
    "JAX's _gather does not run, and nothing communicates",
    lambda m: not m["gather"] and not m["collectives"],
    "gather",
    "collectives",
)
GATHERS = moves(
    "JAX's _gather runs, so that its absence says something", lambda m: m["gather"], "gather"
)


@DEFAULTS.clause(
    "indexing.remedies.no-gather",
    claim="migrate-pmap.options-remove-gather",
    needs=devices(2),
    expect=unless_legacy(
        OF_NEW,
        every(
            steps(
                control=returns(first_row),
                replicated_output=returns(double_summed),
                local_shard=returns(first_row),
            ),
            steps(control=GATHERS, replicated_output=NO_GATHER, local_shard=NO_GATHER),
        ),
    ),
)
def no_gather(impl: Implementation, cluster: Cluster) -> None:
    """Neither a replicated output nor a local shard needs a _gather; the control does."""
    here = impl.mesh("i", cluster.local_devices)
    sharding = jax.sharding.NamedSharding(here, jax.sharding.PartitionSpec("i"))
    placed = jax.device_put(cluster.rows(*ROW) * 2, sharding)
    access(cluster, "control", INTEGERS["zero"], placed)
    access(
        cluster, "replicated output", FETCHED, output(impl, cluster, double_sum(), out_axes=None)
    )
    access(cluster, "local shard", LOCAL, output(impl, cluster))


# --- H3, H6, H8: what x[0] does ------------------------------------------------------------------

STACK = ("__getitem__", "rewriting_take", "_gather", "gather")


def runs_through(names: tuple[str, ...]) -> Expectation:
    """The noted stack is that of functions of these names, in this order."""

    def holds(_: Place, stack: Any) -> bool:
        # Above them is nothing but the function that has `x[0]`.
        return [name.rsplit(":", 1)[-1] for name in stack[1:]] == list(names)

    return noted("stack", f"a stack of {', '.join(names)}", holds, show=" > ".join)


@clause(
    "indexing.stack-trace.zero",
    claim="migrate-pmap.index-stack-trace",
    left_out="the result does not depend on the number of processes",
    needs=devices(2),
    expect={
        LEGACY_PMAP: OF_NEW,
        NEW_PMAP: accessed(runs_through(STACK), returns(first_row)),
        SHARD_MAP: accessed(runs_through(STACK), returns(first_of_all)),
    },
)
def stack_trace(impl: Implementation, cluster: Cluster) -> None:
    """`x[0]` appears in a stack trace as a gather, called by __getitem__ and rewriting_take."""
    seen = access(
        cluster, "access", INTEGERS["zero"], output(impl, cluster), watched="slicing.py:gather"
    )
    if seen is not None:
        cluster.note("stack", seen.calls.stack)


@clause(
    "indexing.multi-process.first-row",
    claim="migrate-pmap.multi-host-index-first-row",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect={
        # A pmap's output is process-local: legacy pmap, the reference here, gives its first row.
        LEGACY_PMAP: accessed(returns(first_row)),
        NEW_PMAP: accessed(returns(first_row)),
        SHARD_MAP: accessed(replicated(SHARD_MAP), returns(first_of_all)),
    },
)
def first_row_of_all(impl: Implementation, cluster: Cluster) -> None:
    """`x[0]` is a global array's first row in every process; of a pmap's output, this process's
    first row.
    """
    access(cluster, "access", INTEGERS["zero"], output(impl, cluster))


@clause(
    "indexing.multi-process.hard-error",
    claim="migrate-pmap.multi-host-index-hard-error",
    cause="using-an-output-raises-copy-arrays",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect={
        LEGACY_PMAP: accessed(returns(first_row)),
        NEW_PMAP: accessed(
            raises("JaxRuntimeError", "^INVALID_ARGUMENT: CopyArrays only", otherwise=first_row)
        ),
        SHARD_MAP: accessed(returns(first_of_all)),
    },
)
def hard_error(impl: Implementation, cluster: Cluster) -> None:
    """`x[0]` of a new pmap's output raises an error about its list of devices."""
    x = output(impl, cluster)
    cluster.step("access", lambda: x[0])
