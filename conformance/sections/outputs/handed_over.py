"""Objects that users pass to `x[0]` and to `unreplicate`, and NumPy's `x[0]` of them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.outputs import WIDTH, block_map, everything, ours
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double, psum, summed
from conformance.worker.protocols import Cluster, Implementation

KEY_NUMBERS = 2  # in a PRNG key's data


def copies(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output whose rows are all equal: a sum over all devices."""
    return impl.map(psum())(impl.given(cluster.rows(WIDTH)))


def two_leaves(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output with two leaves, as a training state has."""
    function = impl.map(lambda x: {"a": x * 2, "b": (x.sum(),)})
    return function(impl.given(cluster.rows(WIDTH)))


def of_half(impl: Implementation, cluster: Cluster) -> Any:
    """Return the output of a mapped function over the second half of the devices."""
    half = len(cluster.local_devices) // 2
    function = impl.map(double(), devices=cluster.local_devices[half:])
    return function(cluster.rows(WIDTH)[half:])


def of_one_device(impl: Implementation, cluster: Cluster) -> Any:
    """Return the output of a mapped function over one device."""
    function = impl.map(double(), devices=cluster.local_devices[1:2])
    return function(cluster.rows(WIDTH)[1:2])


def two_rows(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output with two rows on each device (for pmap, a stack of pairs of rows)."""
    data = cluster.rows(2, WIDTH)
    if impl.is_pmap:
        return impl.map(double())(data)
    blocks = jax.make_array_from_process_local_data(impl.sharding(), data.reshape(-1, WIDTH))
    return block_map(impl, double())(blocks)


def keys_as_numbers(impl: Implementation, cluster: Cluster) -> Any:
    """Return the numbers that each device draws from its key."""
    return impl.given(cluster.rows(KEY_NUMBERS, dtype=np.uint32))


def typed_keys(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output of typed PRNG keys."""
    function = impl.map(lambda x: jax.random.wrap_key_data(x, impl="threefry2x32"))
    return function(keys_as_numbers(impl, cluster))


def raw_keys(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output of raw PRNG keys."""
    return impl.map(lambda x: x + x)(keys_as_numbers(impl, cluster))


@described("the rows that were put")
def all_placed(place: Place) -> Any:
    return place.rows(WIDTH)


@described("the first of the rows that were put")
def first_placed(place: Place) -> Any:
    return place.rows(WIDTH)[0]


@described("the first of this process's rows, doubled, and its sum")
def first_leaves(place: Place) -> Any:
    return {"a": ours(place)[0], "b": (place.rows(WIDTH)[0].sum(),)}


@described("the first of all rows, doubled, and its sum")
def first_leaves_of_all(place: Place) -> Any:
    return {"a": everything(place)[0], "b": (place.all_rows(WIDTH)[0].sum(),)}


@described("the first row of the second half of this process's rows, doubled")
def first_of_half(place: Place) -> Any:
    return ours(place)[place.topology.devices_per_process // 2]


@described("the second of this process's rows, doubled")
def second_own(place: Place) -> Any:
    return ours(place)[1]


@described("the second of this process's rows, as the only one of an array")
def second_own_alone(place: Place) -> Any:
    return ours(place)[1:2]


@described("the first element of each of this process's rows, doubled")
def first_elements(place: Place) -> Any:
    return ours(place)[:, 0]


@described("the first element of the sum of all rows")
def first_of_sum(place: Place) -> Any:
    return summed(WIDTH)(place)[0]


@described("the first device's block of this process's rows, doubled")
def first_block(place: Place) -> Any:
    return place.rows(2, WIDTH)[0] * 2


@described("the first of all rows, doubled")
def first_of_blocks(place: Place) -> Any:
    return place.all_rows(2, WIDTH)[0, 0] * 2


@described("the sum over all processes")
def sum_of_all(place: Place) -> Any:
    return place.all_rows().sum()


@described("the numbers of the first of this process's keys")
def first_key(place: Place) -> Any:
    return place.rows(KEY_NUMBERS, dtype=np.uint32)[0]


@described("the numbers of the first of all keys")
def first_key_of_all(place: Place) -> Any:
    return place.all_rows(KEY_NUMBERS, dtype=np.uint32)[0]


@described("the first of this process's keys, its numbers doubled")
def first_raw_key(place: Place) -> Any:
    return first_key(place) * np.uint32(2)


@described("the first of all keys, its numbers doubled")
def first_raw_key_of_all(place: Place) -> Any:
    return first_key_of_all(place) * np.uint32(2)
