"""Global arrays from the full data, from each process's part, and from one array per device.

pmap takes the same three, over its own process's devices. Some of the arrays span two processes
only: then the others run the same lines, and hold no part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from conformance.sections.inputs import (
    CONTROL,
    TAKEN_AS_THEY_ARE,
    WIDTH,
    ShapeOf,
    Taken,
    all_of,
    block_map,
    control,
    mapped,
    own,
    refuses,
    sharding_of,
    unless_shard_map,
)
from conformance.spec.arrays import returns_array
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import Columns, of_shard_map
from conformance.spec.expectation import returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation


def by_device(all_rows: Any, part: Any, sharding: Any) -> Any:
    """One array for each of this process's devices, and what JAX makes of them."""
    here = [d for d in sharding.mesh.devices.flat if d.process_index == jax.process_index()]
    arrays = [jax.device_put(row[None], d) for row, d in zip(part, here, strict=True)]
    return jax.make_array_from_single_device_arrays(
        all_rows.shape, sharding, arrays, dtype=part.dtype
    )


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make an array from the rows of all devices, or from this process's part."""

    key: str
    text: str
    build: Callable[[Any, Any, Any], Any]


WAYS: Mapping[str, Way] = table(
    Way(
        "device-put",
        "Every process has the full data, and calls `device_put`.",
        lambda all_rows, part, sharding: jax.device_put(all_rows, sharding),
    ),
    Way(
        "process-local-data",
        "Each process has its part, and calls `make_array_from_process_local_data`.",
        lambda all_rows, part, sharding: jax.make_array_from_process_local_data(
            sharding, part, all_rows.shape
        ),
    ),
    Way(
        "single-device-arrays",
        "One array per device, joined by `make_array_from_single_device_arrays`.",
        by_device,
    ),
)


@family(
    "inputs.build.{way}",
    way=WAYS,
    claim="multi-process.three-ways-to-build-arrays",
    title="{way.text}",
    fact="inputs.build",
    topologies=ONE_AND_SEVERAL,
    expect=mapped(doubled(WIDTH), WIDTH),
)
def build(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """The map of an array that was built in one of the three ways."""
    rows, part = impl.rows(cluster, WIDTH), cluster.rows(WIDTH)
    function, sharding = impl.map(double()), impl.sharding()
    for name in ("first call", "second call"):
        array = way.build(rows, part, sharding)
        cluster.step(name, function, array)


# --- One array per device -------------------------------------------------------------------------

EXAMPLE = "multi-process.single-device-arrays-example"


@described("the numbers of all devices, by process")
def numbers(place: Place) -> Any:
    shape = (place.topology.processes, place.topology.devices_per_process)
    return np.arange(place.topology.devices, dtype=np.int32).reshape(shape)


@described("the numbers of this process's devices, doubled")
def own_numbers_doubled(place: Place) -> Any:
    return numbers(place)[place.process : place.process + 1] * 2


def _by_process(place: Place) -> tuple[int, ...]:
    return (place.topology.processes, place.topology.devices_per_process)


OWN_NUMBERS = returns_array(own_numbers_doubled, _by_process)


@clause(
    "inputs.single-device-arrays.example",
    claim=EXAMPLE,
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(
        steps(
            gathered=returns(numbers),
            mapped=OWN_NUMBERS,
            mapped_again=OWN_NUMBERS,
        ),
        TAKEN_AS_THEY_ARE,
    ),
)
def example(impl: Implementation, cluster: Cluster) -> None:
    """One number per device becomes a global array: gathered as in the example, and mapped."""
    shape = (jax.process_count(), jax.local_device_count())
    sharding = sharding_of(jax.make_mesh(shape, ("i", "j")), "i", "j")
    local_arrays = [
        jax.device_put(jnp.array([[jax.process_index() * jax.local_device_count() + i]]), device)
        for i, device in enumerate(jax.local_devices())
    ]
    array = jax.make_array_from_single_device_arrays(
        shape=shape, sharding=sharding, arrays=local_arrays
    )
    cluster.step("gathered", lambda: multihost_utils.process_allgather(array, tiled=True))
    function = block_map(impl, sharding, double())
    cluster.step("mapped", function, array)
    cluster.step("mapped again", function, array)


@described(
    "all rows, doubled (of one process's own array in a stack of one), and that they are right"
)
def gathered_and_compared(place: Place) -> Any:
    rows = place.all_rows(WIDTH) * 2
    return [rows[None] if place.topology.processes == 1 else rows, np.True_]


@clause(
    "inputs.single-device-arrays.example-gather",
    claim=EXAMPLE,
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(returns(gathered_and_compared), TAKEN_AS_THEY_ARE),
)
def example_gather(impl: Implementation, cluster: Cluster) -> None:
    """The example's own check, with `process_allgather` as it is written."""
    array = by_device(cluster.all_rows(WIDTH), cluster.rows(WIDTH), impl.sharding())
    output = impl.map(double())(array)

    def check() -> Any:
        gathered = multihost_utils.process_allgather(output)
        return [gathered, np.all(gathered == cluster.all_rows(WIDTH) * 2)]

    cluster.twice(check)


def missing(place: Place) -> str:
    """The message where one local device has no array."""
    here = place.topology.devices_per_process
    return rf"Expected {here} per-device arrays .*, but got {here - 1}$"


def other_shape(place: Place) -> str:
    """The message where each array lacks the leading dimension."""
    return rf"Expected shard shape \(1, {WIDTH}\) doesn't match .* array shape \({WIDTH},\)"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Single-device arrays that are not one row per device, in order: `of(rows, devices)`.

    `refused` is the message of the error, where they are no array.
    """

    key: str
    text: str
    of: Callable[[Any, list[Any]], list[Any]]
    fact: str
    refused: Callable[[Place], str] | None = None

    def expected(self) -> Columns:
        """The map's result, or a refusal, in both calls, after the control."""
        return unless_shard_map(self._in_both_calls(own(WIDTH)), self._in_both_calls(all_of(WIDTH)))

    def _in_both_calls(self, shape: ShapeOf) -> Expectation:
        expected = complete = returns_array(doubled(WIDTH), shape, text="what complete arrays give")
        if self.refused is not None:
            taken = Taken("what complete arrays give", doubled(WIDTH), shape)
            expected = refuses("ValueError", self.refused, phase="arguments", taken=taken)
        return steps(control=complete, first_call=expected, second_call=expected)


def one_row_each(rows: Any, devices: list[jax.Device]) -> list[Any]:
    """One row on each of this process's devices."""
    return [jax.device_put(rows[i : i + 1], d) for i, d in enumerate(devices)]


PIECES: Mapping[str, Pieces] = table(
    Pieces(
        "any-order",
        "The arrays are listed in reverse order: each still becomes the shard of its own device.",
        lambda rows, devices: one_row_each(rows, devices)[::-1],
        fact="any-order",
    ),
    Pieces(
        "missing",
        "An array is missing for one local device.",
        lambda rows, devices: one_row_each(rows, devices)[:-1],
        fact="incomplete",
        refused=missing,
    ),
    Pieces(
        "other-shape",
        "Each array is a row without its leading dimension, as seen by the body under pmap.",
        lambda rows, devices: [jax.device_put(r, d) for r, d in zip(rows, devices, strict=True)],
        fact="incomplete",
        refused=other_shape,
    ),
)


@family(
    "inputs.single-device-arrays.{pieces}",
    pieces=PIECES,
    claim=EXAMPLE,
    title="{pieces.text}",
    fact=lambda pieces: f"inputs.single-device-arrays.{pieces.fact}",
    topologies=ONE_AND_SEVERAL,
    needs=devices(2),
    expect=lambda pieces: pieces.expected(),
)
def assemble(impl: Implementation, cluster: Cluster, pieces: Pieces) -> None:
    """The map of what JAX makes of some single-device arrays, after a control without fault."""
    function = impl.map(double())
    shape = (len(impl.devices), WIDTH)
    rows, devices = cluster.rows(WIDTH), cluster.local_devices

    def run(arrays: list[Any]) -> Any:
        return function(jax.make_array_from_single_device_arrays(shape, impl.sharding(), arrays))

    arrays = pieces.of(rows, devices)
    cluster.step("control", run, one_row_each(rows, devices))
    cluster.step("first call", run, arrays)
    cluster.step("second call", run, arrays)


# --- Some of the processes ------------------------------------------------------------------------

TAKING_PART = 2  # processes 0 and 1


def _count(place: Place) -> int:
    return place.topology.devices_per_process if place.process < TAKING_PART else 0


@described("this process's rows, doubled, or none where it takes no part")
def local_rows(place: Place) -> Any:
    return (place.rows(WIDTH) * 2)[: _count(place)]


@family(
    "inputs.some-processes.{way}",
    way=WAYS,
    claim="multi-process.arrays-over-some-processes",
    title=lambda way: (
        f"An array over two processes, by {way.key.replace('-', ' ')}, in all processes"
    ),
    needs=processes(TAKING_PART),
    topologies=SEVERAL_PROCESSES,
    expect=of_shard_map(
        steps(control=CONTROL, first_call=returns(local_rows), second_call=returns(local_rows)),
        TAKEN_AS_THEY_ARE,
    ),
)
def two_processes(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """An array over the devices of processes 0 and 1, and a shard_map over these."""
    control(impl, cluster)
    count = TAKING_PART * cluster.topology.devices_per_process
    rows, part = cluster.all_rows(WIDTH)[:count], cluster.rows(WIDTH)[: _count(cluster)]
    devices = [d for p in range(TAKING_PART) for d in jax.local_devices(process_index=p)]
    sharding = sharding_of(impl.mesh("i", devices), "i")
    function = impl.map(double(), devices=devices)

    def run() -> Any:
        array = way.build(rows, part, sharding)
        shards = function(array).addressable_shards
        return np.concatenate([np.zeros((0, WIDTH), np.float32), *(s.data for s in shards)])

    cluster.step("first call", run)
    cluster.step("second call", run)
