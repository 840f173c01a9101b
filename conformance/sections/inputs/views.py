"""Host-local and global views: each process's arguments, and what it can see of an array.

pmap takes each process's own rows and returns its own rows; shard_map takes and returns one array
over all devices. So the same facts are noted of each array, and differ.
"""

from __future__ import annotations

from typing import Any

import jax

from conformance.sections.inputs import (
    DOUBLED,
    SIZE,
    Taken,
    all_of,
    own,
    refuses,
    rows_here,
    sharding_of,
    unless_shard_map,
)
from conformance.spec.arrays import returns_array
from conformance.spec.clause import clause, processes
from conformance.spec.columns import of_pmaps, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, noted, returns, steps
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

SEEN = "facts"  # under which a step notes what its array is


def seen_of(array: Any) -> dict[str, Any]:
    """Return the properties of an array that this process sees."""
    return {
        "shape": list(array.shape),
        "devices": len(array.sharding.device_set),
        "shards here": len(array.addressable_shards),
        "fully addressable": array.is_fully_addressable,
    }


def _local(place: Place) -> dict[str, Any]:
    here = place.topology.devices_per_process
    return {
        "shape": [here, SIZE],
        "devices": here,
        "shards here": here,
        "fully addressable": True,
    }


def _global(place: Place) -> dict[str, Any]:
    total = place.topology.devices
    return {
        "shape": [total, SIZE],
        "devices": total,
        "shards here": place.topology.devices_per_process,
        "fully addressable": place.topology.processes == 1,
    }


LOCAL = noted(
    SEEN,
    "this process's rows on this process's devices, all addressable",
    lambda place, seen: seen == _local(place),
)
GLOBAL = noted(
    SEEN,
    "all rows on all devices, of which this process addresses its own",
    lambda place, seen: seen == _global(place),
)
LOADED_AND_DOUBLED = steps(
    loaded=returns(rows_here), first_call=returns(DOUBLED), second_call=returns(DOUBLED)
)


@clause(
    "inputs.views.host-local",
    claim="migrate-pmap.host-local-array",
    title="pmap takes and returns this process's rows, on this process's devices",
    topologies=ONE_AND_SEVERAL,
    expect=of_pmaps(every(LOADED_AND_DOUBLED, LOCAL), "shard_map takes the global array"),
)
@clause(
    "inputs.views.global",
    claim="migrate-pmap.shard-map-global-view",
    title="shard_map takes and returns all rows, on all devices",
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(every(LOADED_AND_DOUBLED, GLOBAL), "pmap takes the host-local array"),
)
def load_and_map(impl: Implementation, cluster: Cluster) -> None:
    """Put this process's rows where the mapped function needs them, and call it."""
    rows = cluster.rows(SIZE)
    data = cluster.step("loaded", jax.make_array_from_process_local_data, impl.sharding(), rows)
    cluster.note(SEEN, seen_of(data))
    function = impl.map(double())
    for name in ("first call", "second call"):
        cluster.note(SEEN, seen_of(cluster.step(name, function, data)))


# --- The other one's view -------------------------------------------------------------------------

OWN_ROWS = "inputs.views.local"  # the fact that a process's part is not the full array

DEFAULTS = Defaults(
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    fact=OWN_ROWS,
)


def not_shared_evenly(place: Place) -> str:
    """The message about an array with fewer rows than the mesh has devices."""
    mesh = rf"The mesh given has shape \({place.topology.devices},\)"
    rows = rf"of shape float32\[{place.topology.devices_per_process},{SIZE}\]"
    return f"axis sizes that are not evenly divisible .*{mesh}.*{rows}"


REFUSED = refuses(
    "ValueError",
    not_shared_evenly,
    phase="trace",
    taken=Taken("an array of the rows of all processes", DOUBLED, all_of(SIZE)),
)
OWN = returns_array(DOUBLED, own(SIZE))


@DEFAULTS.clause("inputs.views.local-rows", expect=unless_shard_map(OWN, REFUSED))
def local_rows(impl: Implementation, cluster: Cluster) -> None:
    """Each process passes its own rows, as many as it has devices, as a NumPy array."""
    cluster.twice(impl.map(double()), cluster.rows(SIZE))


@DEFAULTS.clause("inputs.views.local-array", expect=unless_shard_map(OWN, REFUSED))
def local_array(impl: Implementation, cluster: Cluster) -> None:
    """Each process passes its own rows, sharded over its own devices."""
    sharding = sharding_of(impl.mesh("i", cluster.local_devices), "i")
    cluster.twice(impl.map(double()), jax.device_put(cluster.rows(SIZE), sharding))


def batch(place: Place) -> Any:
    """This process's own batch: as many rows as the cluster has devices, unlike all others'."""
    return place.all_rows(SIZE) + 100 * place.process


@described("all of this process's own batch, doubled")
def batch_doubled(place: Place) -> Any:
    return batch(place) * 2


@described("this process's devices' rows of its own batch, doubled")
def part_of_batch(place: Place) -> Any:
    return place.mine(batch_doubled(place))


NOT_THE_SAME = refuses(
    "AssertionError",
    lambda place: "is not the same on each process",
    taken=Taken(
        "this process's part of its own batch, which is taken for the whole",
        part_of_batch,
        all_of(SIZE),
    ),
)


def per_device(place: Place) -> tuple[int, ...]:
    """The shape of as many rows as the cluster has devices, split over this process's."""
    return (place.topology.devices_per_process, place.topology.processes, SIZE)


@described("this process's own batch, split over its devices, doubled")
def batch_by_devices(place: Place) -> Any:
    return batch_doubled(place).reshape(place.topology.devices_per_process, -1, SIZE)


@clause(
    "inputs.views.own-batch",
    claim="multi-process.jit-same-values",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(returns_array(batch_by_devices, per_device), NOT_THE_SAME),
)
def own_batch(impl: Implementation, cluster: Cluster) -> None:
    """Each process passes another batch, of a size that could be that of the global one."""
    rows = batch(cluster)
    if impl.is_pmap:
        rows = rows.reshape(cluster.topology.devices_per_process, -1, SIZE)
    cluster.twice(impl.map(double()), rows)


def too_many_rows(place: Place) -> str:
    """The message about more rows than this process has devices."""
    here, all_rows = place.topology.devices_per_process, place.topology.devices
    figures = f"axis_size={all_rows}, num_local_devices={here}"
    return f"leading axis size equal to the number of local devices .*Got {figures}$"


TOO_MANY = refuses(
    "ValueError",
    too_many_rows,
    phase="lower",
    taken=Taken("this process's rows alone", DOUBLED, own(SIZE)),
)


@clause(
    "inputs.views.whole-data",
    claim="migrate-pmap.host-local-array",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(TOO_MANY, returns_array(DOUBLED, all_of(SIZE))),
)
def whole_data(impl: Implementation, cluster: Cluster) -> None:
    """Every process passes the rows of all processes, as a NumPy array."""
    cluster.twice(impl.map(double()), cluster.all_rows(SIZE))
