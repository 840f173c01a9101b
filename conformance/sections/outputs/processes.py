"""A process's part of an output, and how it gets the rest from the other processes.

pmap's output is local. Of shard_map's, each process can read its own shards alone, or everything
together with all other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from conformance.sections.outputs import WIDTH, doubled_rows, everything, host_sees, ours
from conformance.spec.arrays import returns_host
from conformance.spec.clause import clause, processes
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

SHARDS = "multi-process.addressable-shards-in-some-processes"
GATHER = "multi-process.fix-process-allgather"

HELD_HERE = "outputs.host.local"  # the fact that several clauses vary


@described("the first of this process's rows")
def first_here(place: Place) -> Any:
    return ours(place)[:1]


@described("0: this process's rows are the whole array")
def own_first_index(place: Place) -> Any:
    return np.array([0])


@described("process 0's rows, doubled; the others read nothing")
def ours_in_process_0(place: Place) -> Any:
    return ours(place) * (place.process == 0)


@described("the number of this process's first row in the global array")
def first_index(place: Place) -> Any:
    return np.array([place.first_row])


@dataclass(frozen=True, slots=True)
class Part:
    """A look at what is here, and what pmap's and shard_map's user sees."""

    key: str
    text: str
    program: Callable[[Any], Any]
    of_pmap: Model
    of_shard_map: Model


PARTS: Mapping[str, Part] = table(
    Part(
        "shards",
        "[s.data for s in x.addressable_shards]",
        lambda x: np.concatenate([np.asarray(s.data) for s in x.addressable_shards]),
        ours,
        ours,
    ),
    Part(
        "shard-index",
        "x.addressable_shards[0].index",
        lambda x: np.array([x.addressable_shards[0].index[0].start or 0]),
        own_first_index,
        first_index,
    ),
    Part(
        "data",
        "x.addressable_data(0)",
        lambda x: np.asarray(x.addressable_data(0)),
        first_here,
        first_here,
    ),
)


@family(
    "outputs.host.local.{part}",
    part=PARTS,
    claim=SHARDS,
    title="`{part.text}` of a mapped function's output",
    fact=HELD_HERE,
    topologies=ONE_AND_SEVERAL,
    expect=lambda part: host_sees(part.of_pmap, part.of_shard_map),
)
def part_here(impl: Implementation, cluster: Cluster, part: Part) -> None:
    """Read this process's part of an output."""
    cluster.twice(part.program, doubled_rows(impl, cluster))


@clause(
    "outputs.host.local.one-process-reads",
    claim=SHARDS,
    fact=HELD_HERE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(returns_host(ours_in_process_0)),
)
def one_process_reads(impl: Implementation, cluster: Cluster) -> None:
    """Process 0 alone reads its shards of a mapped function's output."""
    array = doubled_rows(impl, cluster)

    def read() -> Any:
        if jax.process_index() != 0:
            return np.zeros((cluster.topology.devices_per_process, WIDTH), np.float32)
        return np.concatenate([np.asarray(s.data) for s in array.addressable_shards])

    cluster.twice(read)


# --- All of it, with the other processes' help ----------------------------------------------------


@clause(
    "outputs.host.allgather",
    claim=GATHER,
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(returns_host(everything)),
)
def allgather(impl: Implementation, cluster: Cluster) -> None:
    """`process_allgather(x, tiled=True)` of a mapped function's output returns all rows in every
    process.
    """
    array = doubled_rows(impl, cluster)
    cluster.twice(lambda x: multihost_utils.process_allgather(x, tiled=True), array)


@described("all processes' rows, doubled, one block per process")
def by_process(place: Place) -> Any:
    shape = (place.topology.processes, place.topology.devices_per_process, WIDTH)
    return everything(place).reshape(shape)


@clause(
    "outputs.host.allgather-untiled",
    claim=GATHER,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=host_sees(by_process, everything),
)
def allgather_untiled(impl: Implementation, cluster: Cluster) -> None:
    """`process_allgather(x)`, as the document writes it, stacks arrays that are host-local."""
    cluster.twice(lambda x: multihost_utils.process_allgather(x), doubled_rows(impl, cluster))


@clause(
    "outputs.host.replicate-then-fetch",
    claim="multi-process.fix-replicate-then-print",
    topologies=ONE_AND_SEVERAL,
    expect=host_sees(ours, everything),
)
def replicate_then_fetch(impl: Implementation, cluster: Cluster) -> None:
    """The output is replicated by `device_put`, then fetched."""
    replicated = impl.sharding(axis=None)
    array = doubled_rows(impl, cluster)
    cluster.twice(lambda x: np.asarray(jax.device_put(x, replicated)), array)
