"""The arrays that are donated: by whom they were made and where they lie.

Each is the output of a compiled program unless its name says otherwise: only then are its buffers
its own and their addresses comparable, as NumPy's memory may be borrowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.worker.bodies import addend
from conformance.worker.protocols import Cluster, Implementation

Make = Callable[[Implementation, Cluster, int], "Given"]


@dataclass(frozen=True, slots=True)
class Given:
    """An array of a call, and what makes the NumPy array to compare it with."""

    array: Any
    source: Callable[[], Any]


def made(numbers: Callable[[], Any], sharding: Any = None) -> Any:
    """Return the array that a compiled program without inputs computes; without a sharding it is
    uncommitted.

    Nothing else is allocated on the way, so that nothing else is freed while a peak is measured.
    """
    return jax.block_until_ready(jax.jit(numbers, out_shardings=sharding)())


def numbers(impl: Implementation, cluster: Cluster, width: int) -> Callable[[], Any]:
    """The rows of `impl.rows`, to be computed by a program."""
    first = cluster.first_row if impl.is_pmap else 0
    count = len(impl.devices)

    def compute() -> Any:
        row = jax.lax.broadcasted_iota(np.int32, (count, width), 0)
        column = jax.lax.broadcasted_iota(np.int32, (count, width), 1)
        return ((row + first) * width + column + 1).astype(np.float32)

    return compute


def spread(
    impl: Implementation, *spec: str | None, devices: Sequence[jax.Device] | None = None
) -> jax.sharding.NamedSharding:
    """Return a sharding over the mapped function's devices, or over some of them."""
    mesh = impl.mesh("i", devices or impl.devices)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def own_output(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """Return the rows as an output of a mapped function that numbers each row."""
    count = len(cluster.local_devices)
    which = np.arange(cluster.first_row, cluster.first_row + count, dtype=np.int32)
    spread_out = impl.map(
        lambda row: (row * width + 1 + jax.lax.iota(np.int32, width)).astype(np.float32)
    )
    array = jax.block_until_ready(spread_out(impl.given(which)))
    return Given(array, lambda: impl.rows(cluster, width))


def placed(*spec: str | None) -> Make:
    """Return a maker of rows over the mapped function's devices, sharded by `spec`."""

    def make(impl: Implementation, cluster: Cluster, width: int) -> Given:
        array = made(numbers(impl, cluster, width), spread(impl, *spec))
        return Given(array, lambda: impl.rows(cluster, width))

    return make


def on_one(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """The rows, committed to one of this process's devices."""
    where = jax.sharding.SingleDeviceSharding(cluster.local_devices[0])
    array = made(numbers(impl, cluster, width), where)
    return Given(array, lambda: impl.rows(cluster, width))


def uncommitted(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """The rows on the default device, committed to none."""
    array = made(numbers(impl, cluster, width))
    return Given(array, lambda: impl.rows(cluster, width))


def on_others(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """Return half of the rows, on the devices that the mapped function does not use."""
    half = len(impl.devices) // 2
    rows = numbers(impl, cluster, width)
    array = made(lambda: rows()[:half], spread(impl, "i", devices=impl.devices[half:]))
    return Given(array, lambda: impl.rows(cluster, width)[:half])


def in_numpy(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """The rows as NumPy."""
    return Given(impl.rows(cluster, width), lambda: impl.rows(cluster, width))


def unmapped_array(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """Return an array for an unmapped argument, on all devices of the mapped function."""
    tens = made(lambda: (jax.lax.iota(np.float32, width) + 1) * 10, spread(impl))
    return Given(tens, lambda: addend(width))


def unmapped_on(device: int) -> Make:
    """Return a maker of an array for an unmapped argument, committed to a device of this
    process.
    """

    def make(impl: Implementation, cluster: Cluster, width: int) -> Given:
        where = jax.sharding.SingleDeviceSharding(cluster.local_devices[device])
        return Given(made(lambda: jax.numpy.asarray(addend(width)), where), lambda: addend(width))

    return make


def unmapped_uncommitted(impl: Implementation, cluster: Cluster, width: int) -> Given:
    """Return an array for an unmapped argument on the default device, committed to none."""
    return Given(made(lambda: jax.numpy.asarray(addend(width))), lambda: addend(width))
