"""Host-local and global views: what one process hands to a map, and what it can see of an array.

pmap takes each process's own rows and returns its own rows; shard_map takes and returns one array
over all devices. So the facts noted of an array are the same list everywhere, and differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices, processes
from conformance.catalogue.topology import (
    ONE_AND_SEVERAL,
    ONE_AND_TWO,
    ONE_PROCESS,
    SEVERAL_PROCESSES,
    Place,
)
from conformance.judging.columns import everywhere, of_pmaps, of_shard_map, unless_legacy
from conformance.judging.expectation import (
    Expectation,
    every,
    noted,
    raises,
    returns,
    sharded,
    steps,
)
from conformance.probing.bodies import double, doubled
from conformance.sections.inputs import sharding_of, unless_shard_map

SEEN = "facts"  # under which a step notes what its array is
SIZE = 3  # of a row


def rows_here(place: Place) -> Any:
    """this process's rows"""
    return place.rows(SIZE)


DOUBLED = doubled(SIZE)


def seen_of(array: Any) -> dict[str, Any]:
    """What this process sees of an array."""
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
def load_and_map(impl: Any, cluster: Any) -> None:
    """This process's rows, put where the map wants them, and the map of them."""
    rows = cluster.rows(SIZE)
    data = cluster.step("loaded", jax.make_array_from_process_local_data, impl.sharding(), rows)
    cluster.note(SEEN, seen_of(data))
    function = impl.map(double())
    for name in ("first call", "second call"):
        cluster.note(SEEN, seen_of(cluster.step(name, function, data)))


# --- The other one's view -------------------------------------------------------------------------

OWN_ROWS = "inputs.views.local"  # the fact that what is this process's is not the whole
REFUSED = raises(ValueError, "devices|divisible|sharding", otherwise=DOUBLED)


@clause(
    "inputs.views.local-rows",
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    fact=OWN_ROWS,
    expect=unless_shard_map(returns(DOUBLED), REFUSED),
)
def local_rows(impl: Any, cluster: Any) -> None:
    """Each process passes its own rows, as many as it has devices, as a NumPy array."""
    cluster.twice(impl.map(double()), cluster.rows(SIZE))


@clause(
    "inputs.views.local-array",
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    fact=OWN_ROWS,
    expect=unless_shard_map(returns(DOUBLED), REFUSED),
)
def local_array(impl: Any, cluster: Any) -> None:
    """Each process passes its own rows, sharded over its own devices."""
    sharding = sharding_of(impl.mesh("i", cluster.local_devices), "i")
    cluster.twice(impl.map(double()), jax.device_put(cluster.rows(SIZE), sharding))


def batch(place: Place) -> Any:
    """This process's own batch: as many rows as the cluster has devices, unlike all others'."""
    return place.all_rows(SIZE) + 100 * place.process


def batch_doubled(place: Place) -> Any:
    """all of this process's own batch, doubled"""
    return batch(place) * 2


def batch_by_devices(place: Place) -> Any:
    """this process's own batch, split over its devices, doubled"""
    return batch_doubled(place).reshape(place.topology.devices_per_process, -1, SIZE)


@clause(
    "inputs.views.own-batch",
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(
        returns(batch_by_devices),
        raises(ValueError, "process|local|global", otherwise=batch_doubled),
    ),
)
def own_batch(impl: Any, cluster: Any) -> None:
    """Each process passes another batch, of a size that could be the global one."""
    rows = batch(cluster)
    if impl.is_pmap:
        rows = rows.reshape(cluster.topology.devices_per_process, -1, SIZE)
    cluster.twice(impl.map(double()), rows)


@clause(
    "inputs.views.whole-data",
    claim="migrate-pmap.host-local-array",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(raises(ValueError, "devices", otherwise=DOUBLED), returns(DOUBLED)),
)
def whole_data(impl: Any, cluster: Any) -> None:
    """Every process passes the rows of all processes, as a NumPy array."""
    cluster.twice(impl.map(double()), cluster.all_rows(SIZE))


# --- is_fully_addressable -------------------------------------------------------------------------

ADDRESSABLE = "fully addressable"
ALL_HERE = "inputs.addressable"  # the fact that an array is, where all its devices are here


def addressable(text: str, expected: bool) -> Expectation:
    """Every step's array says that it is, or is not, fully addressable."""
    return noted(ADDRESSABLE, text, lambda place, seen: seen is expected)


SEEN_WHOLE = addressable("fully addressable", True)
SEEN_IN_PART = addressable("not fully addressable", False)

ASKED = steps(
    input=returns(rows_here),
    replicated=returns(lambda place: np.ones(SIZE, np.float32)),
    output=returns(DOUBLED),
    output_again=returns(DOUBLED),
)


def ask(impl: Any, cluster: Any, devices: list[Any], mapped_over: list[Any] | None) -> None:
    """What an input, an array replicated as the map's are, and the map's output say."""
    mesh = impl.mesh("i", devices)
    rows, ones = cluster.rows(SIZE), np.ones(SIZE, np.float32)
    data = jax.make_array_from_process_local_data(sharding_of(mesh, "i"), rows)
    constant = jax.make_array_from_process_local_data(sharding_of(mesh), ones)
    function = impl.map(double(), devices=mapped_over)
    for name, array in (
        ("input", data),
        ("replicated", constant),
        ("output", function(data)),
        ("output again", function(data)),
    ):
        cluster.step(name, lambda array=array: array)
        cluster.note(ADDRESSABLE, array.is_fully_addressable)


@clause(
    "inputs.addressable.one-process",
    claim="migrate-pmap.fully-addressable-one-process",
    title="`is_fully_addressable` of inputs and outputs, with one process.",
    fact=ALL_HERE,
    topologies=ONE_PROCESS,
    expect=everywhere(every(ASKED, SEEN_WHOLE)),
)
@clause(
    "inputs.addressable.several-processes",
    claim="migrate-pmap.fully-addressable-several-processes",
    title="`is_fully_addressable` of inputs and outputs, with several: pmap's are host-local.",
    fact=ALL_HERE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(every(ASKED, SEEN_WHOLE), every(ASKED, SEEN_IN_PART)),
)
def all_devices(impl: Any, cluster: Any) -> None:
    """`is_fully_addressable` over the devices that a map takes when it is told of none."""
    ask(impl, cluster, impl.devices, None)


@clause(
    "inputs.addressable.own-devices",
    claim="migrate-pmap.fully-addressable-several-processes",
    fact=ALL_HERE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(every(ASKED, SEEN_WHOLE)),
)
def own_devices(impl: Any, cluster: Any) -> None:
    """With several processes, an array over one process's own devices is fully addressable."""
    ask(impl, cluster, cluster.local_devices, cluster.local_devices)


# --- Shardings ------------------------------------------------------------------------------------

RANK = "shape of one shard"


def _over_i(place: Place, sharding: Mapping[str, Any]) -> bool:
    return sharding["type"] == "NamedSharding" and len(sharding.get("mesh") or {}) == 1


@clause(
    "inputs.sharding.rank",
    claim="migrate-pmap.sharding-rank",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=unless_legacy(
        every(
            returns(DOUBLED),
            sharded("PmapSharding", lambda place, s: s["type"] == "PmapSharding"),
            noted(RANK, "the row without the device axis", lambda place, seen: seen == [SIZE]),
        ),
        every(
            returns(DOUBLED),
            sharded("NamedSharding over the map's axis", _over_i),
            noted(RANK, "one row, rank kept", lambda place, seen: seen == [1, SIZE]),
        ),
    ),
)
def sharding_rank(impl: Any, cluster: Any) -> None:
    """The sharding of a map's output, and the shape that it gives a shard."""
    data, function = impl.given(cluster.rows(SIZE)), impl.map(double())
    for name in ("first call", "second call"):
        output = cluster.step(name, function, data)
        cluster.note(RANK, list(output.sharding.shard_shape(output.shape)))


@clause(
    "inputs.sharding.single-device",
    claim="migrate-pmap.single-device-sharding",
    topologies=ONE_AND_TWO,
    expect=everywhere(
        every(
            steps(
                put=returns(rows_here),
                computed=returns(DOUBLED),
                uncommitted=returns(rows_here),
                shard=returns(lambda place: (place.rows(SIZE) * 2)[:1]),
            ),
            sharded("SingleDeviceSharding", lambda place, s: s["type"] == "SingleDeviceSharding"),
        ),
    ),
)
def single_device(impl: Any, cluster: Any) -> None:
    """Arrays that live on one device: put there, computed there, never put, a map's one shard."""
    rows, device = cluster.rows(SIZE), cluster.local_devices[0]
    placed = cluster.step("put", jax.device_put, rows, device)
    cluster.step("computed", jax.jit(double()), placed)
    cluster.step("uncommitted", jax.numpy.asarray, rows)
    output = impl.map(double())(impl.given(rows))
    cluster.step("shard", lambda: output.addressable_shards[0].data)
