"""Fixes that known issues name, for jobs of several processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.multi_controller.fates import (
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    FATAL,
    OF_A_JOB,
    ends,
    run,
)
from conformance.spec.clause import clause, processes
from conformance.spec.columns import of_jax, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, returns, twice
from conformance.spec.family import table
from conformance.spec.releases import by_release
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 2

DEFAULTS = Defaults(needs=processes(2), topologies=SEVERAL_PROCESSES)


def over_all(cluster: Cluster, *spec: str) -> NamedSharding:
    """A sharding over all devices, on an Auto axis."""
    kinds = (AxisType.Auto,)
    return NamedSharding(Mesh(np.array(cluster.devices), ("i",), axis_types=kinds), P(*spec))


@described("this process's rows of the global array, plus the sum of all")
def plus_sum(place: Place) -> Any:
    return place.rows(WIDTH) + place.all_rows(WIDTH).sum(0)


@DEFAULTS.clause(
    "multi_controller.fix.global-to-host-local",
    claim="pmap-silence.more-rows-than-devices",
    title="pmap of `multihost_utils.global_array_to_host_local_array` of a global array.",
    fixes="multi_controller.multi-process-global.auto",
    expect=of_pmaps(twice(returns(plus_sum)), "to shard_map a global array is what it takes"),
)
def global_to_host_local(impl: Implementation, cluster: Cluster) -> None:
    """A map of this process's rows of a global array."""
    rows, sharding = cluster.all_rows(WIDTH), over_all(cluster, "i")
    whole = jax.make_array_from_callback(rows.shape, sharding, lambda index: rows[index])
    function = impl.map(lambda x: x + jax.lax.psum(x, "i"))

    def mapped(x: Any) -> Any:
        local = multihost_utils.global_array_to_host_local_array(x, sharding.mesh, P("i"))
        return function(local)

    cluster.twice(mapped, whole)


@described("this process's rows, times four")
def four_times(place: Place) -> Any:
    return place.rows(WIDTH) * 4


@DEFAULTS.clause(
    "multi_controller.fix.warning-ignored",
    claim="pmap-silence.reuse-after-donation",
    title="A filter for the message 'jax.sharding.PmapSharding' lets pmap take its own output "
    "where warnings are errors.",
    expect=of_pmaps(twice(returns(four_times)), "the warning is about pmap"),
)
def warning_ignored(impl: Implementation, cluster: Cluster) -> None:
    """An output of a map is its next argument, with warnings as errors but for one."""
    function = impl.map(double())

    def fed_back(rows: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            warnings.filterwarnings("ignore", message="jax.sharding.PmapSharding")
            return function(function(rows))

    cluster.twice(fed_back, cluster.rows(WIDTH))


THIRD = np.array([1 / 3, 2 / 3])  # which 32 bits cannot hold


@dataclass(frozen=True, slots=True)
class Narrowed:
    """How values of 64 bits, equal in all processes, are put on the devices of all."""

    key: str
    text: str
    put: Callable[[Any, NamedSharding], Any]


NARROWED: Mapping[str, Narrowed] = table(
    Narrowed(
        "astype",
        "device_put of `x.astype(np.float32)`",
        lambda x, sharding: jax.device_put(x.astype(np.float32), sharding),
    ),
    Narrowed(
        "asarray",
        "device_put of `jnp.asarray(x)`",
        lambda x, sharding: jax.device_put(jnp.asarray(x), sharding),
    ),
    Narrowed(
        "from-callback",
        "jax.make_array_from_callback",
        lambda x, sharding: jax.make_array_from_callback(x.shape, sharding, lambda at: x[at]),
    ),
)


@DEFAULTS.family(
    "multi_controller.fix.narrowed.{narrowed}",
    narrowed=NARROWED,
    claim="sharded-computation.layer-sharded-data",
    title="float64 values, equal in all processes, are put on all devices by {narrowed.text}.",
    expect=of_jax(twice(returns(described("the values as float32")(lambda _: np.float32(THIRD))))),
)
def narrowed_first(impl: Implementation, cluster: Cluster, narrowed: Narrowed) -> None:
    """Values of 64 bits, replicated over the devices of all processes."""
    cluster.twice(lambda x: narrowed.put(x, over_all(cluster)), THIRD)


# --- A process that waits for one that does not come ----------------------------------------------

TIMEOUT_FLAG = "--xla_cpu_collective_timeout_seconds=5"
LATE = """
if number == 1:
    wait_for("raised")
else:
    attempt("again", lambda: total(x))
    say("raised")
print("done", flush=True)
"""
# By the process's own end, and by the loss of the other.
REJECTED = rf"(exit 1|SIGABRT)( \| {FATAL})?"
TIMED_OUT = (
    r"\w+Error UNKNOWN: .*Gloo all-reduce failed: .* "
    "Timed out waiting 5000ms for recv operation to complete"
)


@clause(
    "multi_controller.fix.collective-timeout",
    claim="pmap-silence.misaligned-barriers",
    title="With `--xla_cpu_collective_timeout_seconds`, a process raises in a collective that "
    "another one does not reach.",
    on_cpu=True,
    left_out=OF_A_JOB,
    deadline_s=DEADLINE_S,
    expect=of_jax(
        by_release(
            "0.8.2",
            before=every(*(ends(n, REJECTED, "ends before the first sum") for n in range(2))),
            since=every(
                ends(0, rf"exit 0 \| sum 3\.0 \| again {TIMED_OUT} \| done", "raises, and goes on"),
                ends(1, r"exit 0 \| sum 3\.0 \| done", "goes on"),
            ),
        )
    ),
)
def collective_timeout(impl: Implementation, cluster: Cluster) -> None:
    """Process 1 waits until process 0 has raised in the second sum."""
    run(cluster, BEGIN + COMPUTE + LATE, XLA_FLAGS=TIMEOUT_FLAG)
