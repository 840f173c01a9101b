"""The toy program: an array over all devices, a sum over it, in several processes and in one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.multi_controller import TEXT, alike, local_parts, near, spread
from conformance.spec.aspects import figure
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, every, noted, returns, steps
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import (
    APART,
    FOUR_PROCESSES,
    ONE_AND_SEVERAL,
    ONE_PROCESS,
    SEVERAL_PROCESSES,
    Place,
)
from conformance.worker.protocols import Cluster, Implementation

EIGHT_DEVICES = "the documented program needs eight devices"
BETWEEN = 131072  # what the tutorial's ids of neighbouring processes differ by

DEFAULTS = Defaults(claim="multi-process.toy-equal-result", topologies=FOUR_PROCESSES)


def toy_data() -> Any:
    """The data of the toy program."""
    return np.arange(32).reshape(4, 8).astype(np.int32)


def toy_array() -> Any:
    """The array of the toy program, on its mesh as it is written."""
    mesh = jax.make_mesh((4, 2), ("i", "j"))
    return jax.device_put(toy_data(), spread(mesh, "i", "j"))


@described("the blocks of four numbers of this process's devices, in the devices' order")
def own_blocks(place: Place) -> Any:
    return list(place.mine(toy_data().reshape(8, 1, 4)))


@DEFAULTS.clause(
    "multi_controller.toy.local-shards",
    claim="multi-process.toy-local-shards",
    left_out=EIGHT_DEVICES,
    needs=devices(8),
    expect=of_jax(
        steps(
            made=returns(own_blocks),
            owners=returns(
                lambda place: np.arange(place.topology.devices_per_process),
                text="the numbers of this process's devices among its own",
            ),
        )
    ),
)
@clause(
    "multi_controller.toy.shards-in-one-process",
    claim="multi-process.one-process-same-result",
    title="One process with all eight devices holds all eight shards of the toy program's array.",
    topologies=ONE_PROCESS,
    left_out=APART,
    needs=devices(8),
    expect=of_jax(
        steps(
            made=returns(own_blocks),
            owners=returns(lambda place: np.arange(8), text="the numbers of the devices"),
        )
    ),
)
def local_shards(impl: Implementation, cluster: Cluster) -> None:
    """Each process holds its own devices' shards of the toy program's array."""
    arrays: list[Any] = []

    def make() -> Any:
        arrays.append(toy_array())
        return local_parts(arrays[0])

    def owners() -> Any:
        own = jax.local_devices()
        return np.array([own.index(shard.device) for shard in arrays[0].addressable_shards])

    cluster.step("made", make)
    cluster.step("owners", owners)


# --- The devices, as they are printed -------------------------------------------------------------


@described("131072 times the process's number, and up")
def ids_as_printed(place: Place) -> Any:
    return place.process * BETWEEN + np.arange(place.topology.devices_per_process)


def ids_by_2048(place: Place) -> Any:
    """2048 times the process's number, and up"""
    return place.process * 2048 + np.arange(place.topology.devices_per_process)


@clause(
    "multi_controller.toy.device-ids",
    claim="multi-process.toy-device-ids",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        returns(ids_as_printed, mistakes={"2048 times the process's number, and up": ids_by_2048})
    ),
)
def device_ids(impl: Implementation, cluster: Cluster) -> None:
    """The ids of this process's devices, which the toy program prints as part of their names."""
    cluster.twice(lambda: np.array([device.id for device in jax.local_devices()]))


@clause(
    "multi_controller.toy.device-names",
    claim="multi-process.toy-device-names",
    topologies=ONE_AND_SEVERAL,
    needs=devices(4),
    expect=of_jax(
        every(
            returns(lambda place: np.int64(place.topology.devices_per_process), text="how many"),
            noted(
                "names",
                "each device prints as TFRT_CPU_ and its id",
                lambda place, seen: (
                    len(seen) == place.topology.devices_per_process
                    and all(name == f"TFRT_CPU_{id}" for name, id in seen)
                ),
            ),
        )
    ),
)
def device_names(impl: Implementation, cluster: Cluster) -> None:
    """The names of this process's devices, as in the toy program's `f"device {shard.device}"`."""
    for step in ("first call", "second call"):
        cluster.step(step, lambda: np.int64(len(jax.local_devices())))
        cluster.note("names", [[f"{device}", device.id] for device in jax.local_devices()])


# --- The sum, printed by each process -------------------------------------------------------------

EXACT = float(np.sin(np.arange(32.0)).sum())


def _line(place: Place, step: Step) -> tuple[bool, str]:
    text = str(step.extra.get(TEXT, ""))
    head, _, number = text.partition(" got result: ")
    try:
        right = abs(float(number) - EXACT) <= 2e-6 and head == f"process={place.process}"
    except ValueError:
        right = False
    return right, f"said {text!r}" if text else str(step)


PRINTED = OfEachStep(
    "prints its own number and the sum, as a plain number",
    _line,
    claims=frozenset({figure(TEXT)}),
)
SUMMED = every(
    near(lambda place: EXACT, "the sum of all 32 sines, up to rounding"),
    PRINTED,
    alike("bits", "the sum, bit by bit"),
)


@DEFAULTS.clause(
    "multi_controller.toy.equal-result",
    left_out=EIGHT_DEVICES,
    needs=devices(8),
    expect=of_jax(SUMMED),
)
@clause(
    "multi_controller.toy.result-in-one-process",
    claim="multi-process.one-process-same-result",
    title="One process with all eight devices gets the sum that four processes get.",
    topologies=ONE_PROCESS,
    left_out=APART,
    needs=devices(8),
    expect=of_jax(SUMMED),
)
def equal_result(impl: Implementation, cluster: Cluster) -> None:
    """Every process gets, and can print, the same sum of the whole array."""
    array = toy_array()
    for step in ("first call", "second call"):
        result = cluster.step(step, lambda: jnp.sum(jnp.sin(array)))
        if result is not None:
            cluster.note(TEXT, f"process={jax.process_index()} got result: {result}")
            bits = np.asarray(result.addressable_shards[0].data).view(np.uint32)
            cluster.note("bits", hex(int(bits)))


@DEFAULTS.clause(
    "multi_controller.toy.host-sum-in-all",
    title="The sum is one array, replicated over all processes, and not one array per process.",
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(
        every(
            returns(lambda place: place.all_rows().sum(), text="the sum of all rows"),
            noted(
                "whole",
                "replicated over all devices, of which this process addresses its own",
                lambda place, seen: (
                    seen == [True, place.topology.devices, place.topology.devices_per_process]
                ),
            ),
        )
    ),
)
def replicated_sum(impl: Implementation, cluster: Cluster) -> None:
    """A sum over all processes, and where its copies lie."""
    mesh = jax.make_mesh((jax.device_count(),), ("a",))
    array = jax.device_put(cluster.all_rows(), spread(mesh, "a"))
    for step in ("first call", "second call"):
        result = cluster.step(step, lambda: jnp.sum(array))
        if result is not None:
            places = [result.is_fully_replicated, len(result.sharding.device_set)]
            cluster.note("whole", [*places, len(result.addressable_shards)])
