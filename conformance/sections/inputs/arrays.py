"""Properties of arrays on the mapped function's devices: addressability and sharding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.inputs import DOUBLED, SIZE, rows_here, sharding_of, unless_shard_map
from conformance.spec.arrays import dealt_out
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import everywhere, unless_legacy
from conformance.spec.expectation import every, noted, returns, sharded, steps
from conformance.spec.expected import Expectation
from conformance.spec.texts import described
from conformance.spec.topology import APART, ONE_AND_TWO, ONE_PROCESS, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

# --- is_fully_addressable -------------------------------------------------------------------------

ADDRESSABLE = "fully addressable"
ALL_HERE = "inputs.addressable"  # the fact that an array is, where all its devices are here


def addressable(text: str, expected: bool) -> Expectation:
    """Every step's array says that it is, or is not, fully addressable."""
    return noted(ADDRESSABLE, text, lambda place, seen: seen is expected)


SEEN_WHOLE = addressable("fully addressable", True)
SEEN_IN_PART = addressable("not fully addressable", False)


@described("ones")
def ones(place: Place) -> Any:
    return np.ones(SIZE, np.float32)


ASKED = steps(
    input=returns(rows_here),
    replicated=returns(ones),
    output=returns(DOUBLED),
    output_again=returns(DOUBLED),
)


def ask(
    impl: Implementation,
    cluster: Cluster,
    devices: list[jax.Device],
    mapped_over: list[jax.Device] | None,
) -> None:
    """Note the properties of an input, of a replicated array and of the output."""
    mesh = impl.mesh("i", devices)
    rows, one_each = cluster.rows(SIZE), ones(cluster)
    data = jax.make_array_from_process_local_data(sharding_of(mesh, "i"), rows)
    constant = jax.make_array_from_process_local_data(sharding_of(mesh), one_each)
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
    title="`is_fully_addressable` of inputs and outputs, in one process.",
    fact=ALL_HERE,
    topologies=ONE_PROCESS,
    left_out=APART,
    expect=everywhere(every(ASKED, SEEN_WHOLE)),
)
@clause(
    "inputs.addressable.several-processes",
    claim="migrate-pmap.fully-addressable-several-processes",
    title=(
        "`is_fully_addressable` of inputs and outputs, in several processes: pmap's are host-local."
    ),
    fact=ALL_HERE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=unless_shard_map(every(ASKED, SEEN_WHOLE), every(ASKED, SEEN_IN_PART)),
)
def all_devices(impl: Implementation, cluster: Cluster) -> None:
    """Read `is_fully_addressable` of arrays over the default devices of a mapped function."""
    ask(impl, cluster, impl.devices, None)


@clause(
    "inputs.addressable.own-devices",
    claim="migrate-pmap.fully-addressable-several-processes",
    fact=ALL_HERE,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=everywhere(every(ASKED, SEEN_WHOLE)),
)
def own_devices(impl: Implementation, cluster: Cluster) -> None:
    """With several processes, an array over one process's own devices is fully addressable."""
    ask(impl, cluster, cluster.local_devices, cluster.local_devices)


# --- Shardings ------------------------------------------------------------------------------------

RANK = "shape of one shard"


def _over_i(place: Place, sharding: Mapping[str, Any]) -> bool:
    return (
        sharding["type"] == "NamedSharding"
        and sharding["mesh"] == {"i": len(sharding["devices"])}
        and sharding["spec"][:1] == ["i"]
        and not any(sharding["spec"][1:])
    )


@clause(
    "inputs.sharding.rank",
    claim="migrate-pmap.sharding-rank",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=unless_legacy(
        every(
            returns(DOUBLED),
            sharded("PmapSharding of the leading dimension", dealt_out),
            noted(RANK, "the row without the device axis", lambda place, seen: seen == [SIZE]),
        ),
        every(
            returns(DOUBLED),
            sharded("NamedSharding over the map's axis", _over_i),
            noted(RANK, "one row, rank kept", lambda place, seen: seen == [1, SIZE]),
        ),
    ),
)
def sharding_rank(impl: Implementation, cluster: Cluster) -> None:
    """The sharding of a mapped function's output, and the shard shape that it gives."""
    data, function = impl.given(cluster.rows(SIZE)), impl.map(double())
    for name in ("first call", "second call"):
        output = cluster.step(name, function, data)
        if output is not None:
            cluster.note(RANK, list(output.sharding.shard_shape(output.shape)))


@described("the first of this process's rows, doubled")
def first_doubled(place: Place) -> Any:
    return (place.rows(SIZE) * 2)[:1]


@clause(
    "inputs.sharding.single-device",
    claim="migrate-pmap.single-device-sharding",
    topologies=ONE_AND_TWO,
    needs=devices(2),
    expect=everywhere(
        every(
            steps(
                put=returns(rows_here),
                computed=returns(DOUBLED),
                uncommitted=returns(rows_here),
                shard=returns(first_doubled),
            ),
            sharded("SingleDeviceSharding", lambda place, s: s["type"] == "SingleDeviceSharding"),
        ),
    ),
)
def single_device(impl: Implementation, cluster: Cluster) -> None:
    """Arrays on one device: put there, computed there, never put, and a mapped function's only
    shard.
    """
    rows, device = cluster.rows(SIZE), cluster.local_devices[0]
    placed = cluster.step("put", jax.device_put, rows, device)
    cluster.step("computed", jax.jit(double()), placed)
    cluster.step("uncommitted", jax.numpy.asarray, rows)
    output = impl.map(double())(impl.given(rows))
    cluster.step("shard", lambda: output.addressable_shards[0].data)
