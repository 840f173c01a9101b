"""The mean of a batch, as in batch normalisation: of each device's examples, or of all."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.idioms.sharded import split
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


@DEFAULTS.clause("idioms.batch-mean.mapped", expect=everywhere(twice(returns(of_each_device))))
def mapped(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function subtracts the mean of each device's examples."""
    cluster.twice(impl.map(lambda x: centred(x)), cluster.rows(EXAMPLES, WIDTH))


@DEFAULTS.clause("idioms.batch-mean.jitted", expect=of_jax(twice(returns(of_all))))
def jitted(impl: Implementation, cluster: Cluster) -> None:
    """A plain jit of the whole batch, split over the devices, subtracts the mean of all."""
    batch = jax.device_put(cluster.rows(EXAMPLES, WIDTH).reshape(-1, WIDTH), split(impl))
    cluster.twice(jax.jit(lambda x: centred(x)), batch)


@DEFAULTS.clause("idioms.batch-mean.vmapped", expect=of_jax(twice(returns(of_each_device))))
def vmapped(impl: Implementation, cluster: Cluster) -> None:
    """A plain jit of a vmap over the devices' batches subtracts each device's mean."""
    batch = jax.device_put(cluster.rows(EXAMPLES, WIDTH), split(impl))
    cluster.twice(jax.jit(jax.vmap(lambda x: centred(x))), batch)
