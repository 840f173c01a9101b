"""The mean of a batch, as in batch normalisation: of each device's examples, or of all."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.sections.idioms import AXIS
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.texts import described
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

EXAMPLES, WIDTH = 4, 3  # of a device, and of an example

DEFAULTS = Defaults(
    claim="pmap-silence.statistics-of-a-batch",
    needs=devices(2),
    topologies=ONE_PROCESS,
    left_out="other tests cover means over several processes",
)


def centred(batch: Any) -> Any:
    """Return a batch without its mean example, without a collective."""
    return batch - batch.mean(0)


@described("each device's examples without their mean")
def of_each_device(place: Place) -> Any:
    return np.stack([centred(one) for one in place.rows(EXAMPLES, WIDTH)])


@described("all examples without the mean of all")
def of_all(place: Place) -> Any:
    return centred(place.rows(EXAMPLES, WIDTH).reshape(-1, WIDTH))


def split(cluster: Cluster, batch: Any) -> Any:
    """Return a batch that is split over the devices by its first dimension."""
    mesh = jax.sharding.Mesh(np.array(cluster.devices), (AXIS,))
    return jax.device_put(batch, jax.sharding.NamedSharding(mesh, P(AXIS)))


@DEFAULTS.clause("idioms.batch-mean.mapped", expect=everywhere(twice(returns(of_each_device))))
def mapped(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function subtracts the mean of each device's examples."""
    cluster.twice(impl.map(lambda x: centred(x)), cluster.rows(EXAMPLES, WIDTH))


@DEFAULTS.clause("idioms.batch-mean.jitted", expect=of_jax(twice(returns(of_all))))
def jitted(impl: Implementation, cluster: Cluster) -> None:
    """A plain jit of the whole batch, split over the devices, subtracts the mean of all."""
    batch = split(cluster, cluster.rows(EXAMPLES, WIDTH).reshape(-1, WIDTH))
    cluster.twice(jax.jit(lambda x: centred(x)), batch)


@DEFAULTS.clause("idioms.batch-mean.vmapped", expect=of_jax(twice(returns(of_each_device))))
def vmapped(impl: Implementation, cluster: Cluster) -> None:
    """A plain jit of a vmap over the devices' batches subtracts each device's mean."""
    batch = split(cluster, cluster.rows(EXAMPLES, WIDTH))
    cluster.twice(jax.jit(jax.vmap(lambda x: centred(x))), batch)
