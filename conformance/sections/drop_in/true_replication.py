"""The later revision's alternative: the value on each device, without a leading axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.drop_in import (
    AXIS,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.expectation import every, noted, returns, sharded, steps
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, Place
from conformance.worker.bodies import add
from conformance.worker.protocols import Cluster, Implementation

HELD = "held by each device"


@described("the array itself")
def first_row(place: Place) -> Any:
    return place.rows(4)[0]


@described("this process's rows plus the replicated array")
def plus_first_row(place: Place) -> Any:
    return place.rows(4) + first_row(place)


def _over_all(place: Place, sharding: Mapping[str, Any]) -> bool:
    return (
        sharding["type"] == "NamedSharding"
        and not any(sharding["spec"])
        and len(sharding["devices"]) == place.topology.devices_per_process
    )


ON_ALL = sharded("over this process's devices, with a spec that names no axis", _over_all)
WHOLE_ON_EACH = noted(
    HELD,
    "every device holds the whole array",
    lambda place, seen: seen == [first_row(place).tolist()] * place.topology.devices_per_process,
)


@clause(
    "drop_in.true-replication",
    claim="migrate-pmap-later.true-replication",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        every(
            steps(replicated=returns(first_row), replicated_again=returns(first_row)),
            steps(replicated=ON_ALL, replicated_again=ON_ALL),
            steps(replicated=WHOLE_ON_EACH, replicated_again=WHOLE_ON_EACH),
        )
    ),
)
def true_replication(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` with an empty spec, without a leading axis, puts a full copy on each device."""
    for step in ("replicated", "replicated again"):
        replicate(cluster, step)


@clause(
    "drop_in.mapped.true-replication",
    claim="migrate-pmap-later.true-replication",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(
        steps(
            replicated=returns(first_row),
            first_call=returns(plus_first_row),
            second_call=returns(plus_first_row),
        )
    ),
)
def map_of_replicated(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function accepts an array that is really replicated, as an unmapped argument."""
    x = replicate(cluster, "replicated")
    chosen = None if impl.is_pmap else cluster.local_devices
    function = impl.map(add(), in_axes=(0, None), devices=chosen)
    cluster.twice(function, cluster.rows(4), x)


def replicate(cluster: Cluster, step: str) -> Any:
    """This process's first row on each of its devices; noted is whether each has all of it."""
    mesh = jax.sharding.Mesh(np.array(cluster.local_devices), (AXIS,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    x = cluster.step(step, jax.device_put, cluster.rows(4)[0], sharding)
    if x is not None:
        held = {s.device.id: np.asarray(s.data).tolist() for s in x.addressable_shards}
        cluster.note(HELD, [held.get(device.id) for device in cluster.local_devices])
    return x
