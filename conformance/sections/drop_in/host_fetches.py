"""Transfers to the host when JAX arrays are stacked by `jnp.stack` and by `np.stack`."""

from __future__ import annotations

from typing import Any

import jax

from conformance.sections.drop_in import (
    JNP,
    NP,
    Stacking,
    put_sharded,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, noted, returns, steps
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.calls import THROUGH_THE_HOST, calls_of
from conformance.worker.protocols import Cluster, Implementation

# A dtype that Python's buffer protocol does not know: by that, NumPy would read the memory of an
# array on CPU, unnoticed.
UNKNOWN_TO_BUFFERS = "bfloat16"
NARROW = 3

FETCHED = "arrays fetched to the host"


@described("this process's rows")
def narrow_rows(place: Place) -> Any:
    return place.rows(NARROW).astype(jax.numpy.dtype(UNKNOWN_TO_BUFFERS))


ROWS = returns(narrow_rows)
NEVER = noted(FETCHED, "no array goes through the host", lambda _, seen: seen == 0)
EACH = noted(
    FETCHED,
    "each shard goes through the host",
    lambda place, seen: seen == place.topology.devices_per_process,
)


@clause(
    "drop_in.stack.jax-arrays",
    claim="migrate-pmap-later.jnp-stack-for-jax-arrays",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=of_jax(
        every(
            steps(with_jnp=ROWS, with_jnp_again=ROWS, with_np=ROWS),
            steps(with_jnp=NEVER, with_jnp_again=NEVER, with_np=EACH),
        )
    ),
)
def jax_arrays(impl: Implementation, cluster: Cluster) -> None:
    """jnp.stack of JAX arrays fetches nothing to the host; np.stack fetches each of them."""
    there = cluster.local_devices

    def stacked(step: str, stacking: Stacking) -> None:
        # Made anew for each call, as an array keeps what was once fetched of it.
        shards = [jax.numpy.asarray(row) + 0 for row in narrow_rows(cluster)]
        fetched: list[int] = []

        def call() -> Any:
            result, calls = calls_of(lambda: put_sharded(shards, there, stacking.stack))
            fetched.append(calls.counts[THROUGH_THE_HOST])
            return result

        cluster.step(step, call)
        cluster.note(FETCHED, fetched[-1])

    stacked("with jnp", JNP)
    stacked("with jnp again", JNP)
    stacked("with np", NP)
