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
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import (
    Expectation,
    every,
    not_applicable,
    noted,
    raises,
    returns,
    sharded,
    steps,
)

EVERYWHERE = ("1x8", "2x2", "4x2")
SEVERAL = ("2x2", "4x2")

FACTS = "facts"  # under which a step notes what its array is
SIZE = 3


def own(place: Place) -> Any:
    """this process's rows"""
    return place.rows(SIZE)


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(SIZE) * 2


def facts(array: Any) -> dict[str, Any]:
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
    everywhere = place.topology.devices
    return {
        "shape": [everywhere, SIZE],
        "devices": everywhere,
        "shards here": place.topology.devices_per_process,
        "fully addressable": place.topology.processes == 1,
    }


LOCAL = noted(
    FACTS,
    "this process's rows on this process's devices, all addressable",
    lambda place, seen: seen == _local(place),
)
GLOBAL = noted(
    FACTS,
    "all rows on all devices, of which this process addresses its own",
    lambda place, seen: seen == _global(place),
)
LOADED_AND_DOUBLED = steps(
    loaded=returns(own), first_call=returns(doubled), second_call=returns(doubled)
)


def loaded_and_mapped(impl: Any, cluster: Any) -> None:
    """This process's rows, put where the map wants them, and the map of them."""
    rows = cluster.rows(SIZE)
    data = cluster.step("loaded", jax.make_array_from_process_local_data, impl.sharding(), rows)
    cluster.note(FACTS, facts(data))
    function = impl.map(lambda x: x * 2)
    for name in ("first call", "second call"):
        cluster.note(FACTS, facts(cluster.step(name, function, data)))


clause(
    "inputs.views.host-local",
    claim="migrate-pmap.host-local-array",
    topologies=EVERYWHERE,
    expect={
        LEGACY_PMAP: every(LOADED_AND_DOUBLED, LOCAL),
        NEW_PMAP: every(LOADED_AND_DOUBLED, LOCAL),
        SHARD_MAP: not_applicable("shard_map takes the global array"),
    },
    title="pmap takes and returns this process's rows, on this process's devices",
)(loaded_and_mapped)

clause(
    "inputs.views.global",
    claim="migrate-pmap.shard-map-global-view",
    topologies=EVERYWHERE,
    expect={
        LEGACY_PMAP: not_applicable("pmap takes the host-local array"),
        NEW_PMAP: not_applicable("pmap takes the host-local array"),
        SHARD_MAP: every(LOADED_AND_DOUBLED, GLOBAL),
    },
    title="shard_map takes and returns all rows, on all devices",
)(loaded_and_mapped)


# --- The other one's view -------------------------------------------------------------------------

REFUSED = raises(ValueError, "devices|divisible|sharding", otherwise=doubled)


@clause(
    "inputs.views.local-rows",
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL,
    expect={LEGACY_PMAP: returns(doubled), NEW_PMAP: returns(doubled), SHARD_MAP: REFUSED},
)
def local_rows(impl: Any, cluster: Any) -> None:
    """Each process passes its own rows, as many as it has devices, as a NumPy array."""
    cluster.twice(impl.map(lambda x: x * 2), cluster.rows(SIZE))


@clause(
    "inputs.views.local-array",
    claim="migrate-pmap.shard-map-global-view",
    needs=processes(2),
    topologies=SEVERAL,
    expect={LEGACY_PMAP: returns(doubled), NEW_PMAP: returns(doubled), SHARD_MAP: REFUSED},
)
def local_array(impl: Any, cluster: Any) -> None:
    """Each process passes its own rows, sharded over its own devices."""
    mesh = jax.sharding.Mesh(np.array(cluster.local_devices), ("i",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    cluster.twice(impl.map(lambda x: x * 2), jax.device_put(cluster.rows(SIZE), sharding))


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
    topologies=SEVERAL,
    expect={
        LEGACY_PMAP: returns(batch_by_devices),
        NEW_PMAP: returns(batch_by_devices),
        SHARD_MAP: raises(ValueError, "process|local|global", otherwise=batch_doubled),
    },
)
def own_batch(impl: Any, cluster: Any) -> None:
    """Each process passes another batch, of a size that could be the global one."""
    rows = batch(cluster)
    if impl.is_pmap:
        rows = rows.reshape(cluster.topology.devices_per_process, -1, SIZE)
    cluster.twice(impl.map(lambda x: x * 2), rows)


@clause(
    "inputs.views.whole-data",
    claim="migrate-pmap.host-local-array",
    needs=processes(2),
    topologies=SEVERAL,
    expect={
        LEGACY_PMAP: raises(ValueError, "devices", otherwise=doubled),
        NEW_PMAP: raises(ValueError, "devices", otherwise=doubled),
        SHARD_MAP: returns(doubled),
    },
)
def whole_data(impl: Any, cluster: Any) -> None:
    """Every process passes the rows of all processes, as a NumPy array."""
    cluster.twice(impl.map(lambda x: x * 2), cluster.all_rows(SIZE))


# --- is_fully_addressable -------------------------------------------------------------------------

ADDRESSABLE = "fully addressable"


def addressable(text: str, expected: bool) -> Expectation:
    """Every step's array says that it is, or is not, fully addressable."""
    return noted(ADDRESSABLE, text, lambda place, seen: seen is expected)


SEEN_WHOLE = addressable("fully addressable", True)
SEEN_IN_PART = addressable("not fully addressable", False)


def asked(impl: Any, cluster: Any, of: list[Any] | None = None) -> None:
    """What an input, an array replicated as the map's are, and the map's output say."""
    rows = cluster.rows(SIZE)
    over = impl.devices if of is None else of
    mesh = impl.mesh("i", over)
    by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    data = jax.make_array_from_process_local_data(by_rows, rows)
    constant = jax.make_array_from_process_local_data(replicated, np.ones(SIZE, np.float32))
    function = impl.map(lambda x: x * 2, devices=of)
    for name, array in (
        ("input", data),
        ("replicated", constant),
        ("output", function(data)),
        ("output again", function(data)),
    ):
        cluster.step(name, lambda array=array: array)
        cluster.note(ADDRESSABLE, array.is_fully_addressable)


ASKED = steps(
    input=returns(own),
    replicated=returns(lambda place: np.ones(SIZE, np.float32)),
    output=returns(doubled),
    output_again=returns(doubled),
)


@clause(
    "inputs.addressable.one-process",
    claim="migrate-pmap.fully-addressable-one-process",
    topologies=ONE_PROCESS,
    expect=dict.fromkeys(IMPLEMENTATIONS, every(ASKED, SEEN_WHOLE)),
)
def one_process(impl: Any, cluster: Any) -> None:
    """`is_fully_addressable` of inputs and outputs, with one process."""
    asked(impl, cluster)


@clause(
    "inputs.addressable.several-processes",
    claim="migrate-pmap.fully-addressable-several-processes",
    needs=processes(2),
    topologies=SEVERAL,
    expect={
        LEGACY_PMAP: every(ASKED, SEEN_WHOLE),
        NEW_PMAP: every(ASKED, SEEN_WHOLE),
        SHARD_MAP: every(ASKED, SEEN_IN_PART),
    },
)
def several_processes(impl: Any, cluster: Any) -> None:
    """`is_fully_addressable` of inputs and outputs, with several: pmap's are host-local."""
    asked(impl, cluster)


@clause(
    "inputs.addressable.own-devices",
    claim="migrate-pmap.fully-addressable-several-processes",
    needs=processes(2),
    topologies=SEVERAL,
    expect=dict.fromkeys(IMPLEMENTATIONS, every(ASKED, SEEN_WHOLE)),
)
def own_devices(impl: Any, cluster: Any) -> None:
    """With several processes, an array over one process's own devices is fully addressable."""
    asked(impl, cluster, cluster.local_devices)


# --- Shardings ------------------------------------------------------------------------------------

RANK = "shape of one shard"


def _over_i(place: Place, sharding: Mapping[str, Any]) -> bool:
    return sharding["type"] == "NamedSharding" and len(sharding.get("mesh") or {}) == 1


@clause(
    "inputs.sharding.rank",
    claim="migrate-pmap.sharding-rank",
    needs=devices(2),
    topologies=("1x8", "2x2"),
    expect={
        LEGACY_PMAP: every(
            returns(doubled),
            sharded("PmapSharding", lambda place, s: s["type"] == "PmapSharding"),
            noted(RANK, "the row without the device axis", lambda place, seen: seen == [SIZE]),
        ),
        **dict.fromkeys(
            (NEW_PMAP, SHARD_MAP),
            every(
                returns(doubled),
                sharded("NamedSharding over the map's axis", _over_i),
                noted(RANK, "one row, rank kept", lambda place, seen: seen == [1, SIZE]),
            ),
        ),
    },
)
def sharding_rank(impl: Any, cluster: Any) -> None:
    """The sharding of a map's output, and the shape that it gives a shard."""
    data, function = impl.given(cluster.rows(SIZE)), impl.map(lambda x: x * 2)
    for name in ("first call", "second call"):
        output = cluster.step(name, function, data)
        cluster.note(RANK, list(output.sharding.shard_shape(output.shape)))


@clause(
    "inputs.sharding.single-device",
    claim="migrate-pmap.single-device-sharding",
    topologies=("1x8", "2x2"),
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(
                put=returns(own),
                computed=returns(doubled),
                uncommitted=returns(own),
                shard=returns(lambda place: (place.rows(SIZE) * 2)[:1]),
            ),
            sharded("SingleDeviceSharding", lambda place, s: s["type"] == "SingleDeviceSharding"),
        ),
    ),
)
def single_device(impl: Any, cluster: Any) -> None:
    """Arrays that live on one device: put there, computed there, never put, a map's one shard."""
    rows, device = cluster.rows(SIZE), cluster.local_devices[0]
    put = cluster.step("put", jax.device_put, rows, device)
    cluster.step("computed", jax.jit(lambda x: x * 2), put)
    cluster.step("uncommitted", jax.numpy.asarray, rows)
    output = impl.map(lambda x: x * 2)(impl.given(rows))
    cluster.step("shard", lambda: output.addressable_shards[0].data)
