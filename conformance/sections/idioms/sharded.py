"""Global arrays for plain jit: replicated over all devices, or with a row for each."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.idioms import AXIS, examples
from conformance.worker.protocols import Cluster, Implementation


def whole(impl: Implementation) -> NamedSharding:
    """The sharding of what is replicated over all devices."""
    return NamedSharding(impl.mesh(AXIS), P())


def split(impl: Implementation) -> NamedSharding:
    """The sharding of what has a row for each device."""
    return NamedSharding(impl.mesh(AXIS), P(AXIS))


def sharded(impl: Implementation, rows: Any) -> Any:
    """This process's rows, one for each of its devices, as its part of a global array."""
    return jax.make_array_from_process_local_data(split(impl), np.asarray(rows))


def sharded_batch(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """The examples of step `n` as global arrays."""
    features, targets = examples(cluster, n)
    return sharded(impl, cluster.mine(features)), sharded(impl, cluster.mine(targets))
