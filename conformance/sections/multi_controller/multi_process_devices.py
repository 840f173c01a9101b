"""`devices=` and `axis_size=` in several processes: the device of each row.

A process passes the rows of its own devices, in the order of the list; the mapped axis follows the
list. Each body returns a sum over all rows and every row's index, and the devices of the rows are
noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.multi_controller.maps import OWN, Rows
from conformance.spec.clause import processes
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.combining import by_process, then
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, OfEachStep, every, in_steps, noted, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, doubled, psum
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows

WIDTH = 2
HANG_S = 20.0
LIES_ON = "devices of the rows"
CONTROL = "control"  # over all devices, so that every process proves which implementation ran

DEFAULTS = Defaults(
    claim="pmap-silence.devices-subset",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=HANG_S,
)


@dataclass(frozen=True, slots=True)
class Devices:
    """A list of devices, as numbers in the order of `jax.devices()`, that a process passes."""

    key: str
    text: str
    of: Callable[[Place], list[int]]
    claim: str = "pmap-silence.devices-subset"

    def here(self, place: Place) -> list[int]:
        """Return the positions of this process's devices in the list."""
        count = place.topology.devices_per_process
        return [at for at, one in enumerate(self.of(place)) if one // count == place.process]


def everyone(place: Place) -> list[int]:
    """All devices."""
    return list(range(place.topology.devices))


def own(place: Place) -> list[int]:
    """This process's devices."""
    return list(range(place.first_row, place.first_row + place.topology.devices_per_process))


def interleaved(place: Place) -> list[int]:
    """All devices, a process's next to another's."""
    count = place.topology.devices_per_process
    return sorted(everyone(place), key=lambda one: (one % count, one))


def own_reversed(place: Place) -> list[int]:
    """All devices, process by process, each process's in reverse."""
    count = place.topology.devices_per_process
    return sorted(everyone(place), key=lambda one: (one // count, -one))


def first_of_each(place: Place) -> list[int]:
    """Every process's first device."""
    return everyone(place)[:: place.topology.devices_per_process]


ORDER = "pmap-silence.devices-order"

DEVICES: Mapping[str, Devices] = table(
    Devices("in-order", "all devices, in order", everyone, ORDER),
    Devices("reversed", "all devices, reversed", lambda place: everyone(place)[::-1], ORDER),
    Devices("interleaved", "all devices, the processes interleaved", interleaved, ORDER),
    Devices("own-reversed", "all devices, each process's reversed", own_reversed, ORDER),
    Devices("first-of-each", "one device of each process", first_of_each),
    Devices("all-but-one", "all devices but the last", lambda place: everyone(place)[:-1]),
    Devices("local", "this process's devices", own),
    Devices("local-reversed", "this process's devices, reversed", lambda place: own(place)[::-1]),
)

HALF = Devices(
    "half",
    "the first half of the processes' devices",
    lambda place: everyone(place)[: place.topology.devices // 2],
)


def rows_of(chosen: Devices, place: Place) -> Rows:
    """Return the rows of the full mapped axis, one for each device of the list."""
    return place.all_rows(WIDTH)[chosen.of(place)]


def summed_and_numbered(chosen: Devices) -> Callable[[Place], Any]:
    """A model of what a process that has devices in the list holds."""

    @described("each row plus the sum of all rows of the list, and its index in the list")
    def model(place: Place) -> Any:
        rows, here = rows_of(chosen, place), chosen.here(place)
        return [rows[here] + rows.sum(0), np.array(here, np.int32)] if here else []

    return model


def alone(chosen: Devices) -> Callable[[Place], Any]:
    """The same, were this process's devices all of the list."""

    def model(place: Place) -> Any:
        rows = rows_of(chosen, place)[chosen.here(place)]
        return [rows + rows.sum(0), np.arange(len(rows), dtype=np.int32)] if len(rows) else []

    return model


def numbered_as_jax(chosen: Devices) -> Callable[[Place], Any]:
    """Return the model of the same with an axis along `jax.devices()`."""

    def model(place: Place) -> Any:
        rows, here = rows_of(chosen, place), chosen.here(place)
        index = np.argsort(np.argsort(chosen.of(place)))[here].astype(np.int32)
        return [rows[here] + rows.sum(0), index] if here else []

    return model


def places(chosen: Devices) -> OfEachStep:
    """Expect each row on its device of the list."""
    return noted(
        LIES_ON,
        "each row lies on the device that has its place in the list",
        lambda place, seen: seen == [chosen.of(place)[at] for at in chosen.here(place)],
    )


def right(chosen: Devices) -> Expectation:
    """Sum, index and place are those of the list, in both calls; the control is right."""
    model = summed_and_numbered(chosen)
    mistakes = {
        OWN: alone(chosen),
        "numbered in the order of jax.devices()": numbered_as_jax(chosen),
    }
    values = in_steps(returns(model, mistakes=mistakes), *TWICE)
    control = in_steps(returns(doubled(WIDTH)), CONTROL)
    return every(control, values, in_steps(places(chosen), *TWICE))


def passed(impl: Implementation, place: Place, chosen: Devices) -> Rows:
    """Return the rows that a process passes: its own to a pmap, all of them to a shard_map."""
    rows = rows_of(chosen, place)
    return rows[chosen.here(place)] if impl.is_pmap else rows


def lying_on(cluster: Cluster, array: Any) -> list[int]:
    """The device of each of this process's rows, as a number in the order of `jax.devices()`."""
    shards = sorted(array.addressable_shards, key=lambda one: one.index[0].start or 0)
    return [cluster.devices.index(one.device) for one in shards]


def meet(devices: list[jax.Device]) -> None:
    """A psum over these devices by other means, before what may wait for one of them in vain.

    A CPU gives up after 30 s on the first collective of some devices; on those after it never.
    """
    shard_map: Any = jax.shard_map
    rows, whole = jax.sharding.PartitionSpec("i"), jax.sharding.PartitionSpec()
    mesh = jax.sharding.Mesh(np.array(devices), ("i",))
    here = [one for one in devices if one.process_index == jax.process_index()]
    ones = jax.make_array_from_single_device_arrays(
        (len(devices),),
        jax.sharding.NamedSharding(mesh, rows),
        [jax.device_put(np.ones(1, np.float32), one) for one in here],
    )
    summed = jax.jit(shard_map(psum(), mesh=mesh, in_specs=rows, out_specs=whole))
    jax.block_until_ready(summed(ones))


def sum_and_number() -> Callable[[Any], Any]:
    """A row plus the sum of all rows, and the row's index."""
    return lambda x: [x + jax.lax.psum(x, "i"), jax.lax.axis_index("i")]


@DEFAULTS.family(
    "multi_controller.multi-process-devices.{chosen}",
    chosen=DEVICES,
    claim="{chosen.claim}",
    title="`devices=` with {chosen.text}, in several processes.",
    expect=lambda chosen: everywhere(right(chosen)),
)
def over(impl: Implementation, cluster: Cluster, chosen: Devices) -> None:
    """A map over a list of devices in which every process has some."""
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))
    listed = [cluster.devices[one] for one in chosen.of(cluster)]
    if len({one.process_index for one in listed}) > 1:
        meet(listed)
    function = impl.map(sum_and_number(), devices=listed)
    call(cluster, function, passed(impl, cluster, chosen))


def call(cluster: Cluster, function: Callable[[Any], Any], rows: Any) -> None:
    """Two calls, each of whose rows are read, and where they lie noted."""
    for name in TWICE:
        held: list[Any] = []

        def read(held: list[Any] = held) -> Any:
            held.append(function(rows))
            return [local_rows(one) for one in held[0] if one.addressable_shards]

        cluster.step(name, read)
        if held:
            cluster.note(LIES_ON, lying_on(cluster, held[0][0]))


ALL_BUT_LAST = DEVICES["all-but-one"]
ALL_BUT_FIRST = Devices(
    "all-but-first", "all devices but the first", lambda place: everyone(place)[1:]
)


@DEFAULTS.clause(
    "multi_controller.multi-process-devices.fix-axis-size",
    fixes="multi_controller.multi-process-devices.all-but-one",
    title="`axis_size=` with the length of a list makes all processes use the whole list.",
    expect=of_pmaps(right(ALL_BUT_LAST), "shard_map has no `axis_size`"),
)
def over_a_whole_list(impl: Implementation, cluster: Cluster) -> None:
    """A map over all devices but the last, whose number is given as well."""
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))
    listed = [cluster.devices[one] for one in ALL_BUT_LAST.of(cluster)]
    meet(listed)
    function = impl.map(sum_and_number(), devices=listed, axis_size=len(listed))
    call(cluster, function, passed(impl, cluster, ALL_BUT_LAST))


@described("each row times the number of devices in the list")
def times_the_list(place: Place) -> Any:
    return rows_of(ALL_BUT_FIRST, place)[ALL_BUT_FIRST.here(place)] * len(ALL_BUT_FIRST.of(place))


@DEFAULTS.clause(
    "multi_controller.multi-process-devices.counted",
    title="`psum(1)` counts all of `devices=`, also if processes have different numbers of them.",
    expect=everywhere(
        every(in_steps(returns(doubled(WIDTH)), CONTROL), in_steps(returns(times_the_list), *TWICE))
    ),
)
def counted(impl: Implementation, cluster: Cluster) -> None:
    """A map without a collective over all devices but the first: each row times their number."""
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))
    listed = [cluster.devices[one] for one in ALL_BUT_FIRST.of(cluster)]
    function = impl.map(lambda x: x * jax.lax.psum(1, "i"), devices=listed)
    rows = passed(impl, cluster, ALL_BUT_FIRST)
    for name in TWICE:
        cluster.step(name, lambda: local_rows(function(rows)))


# --- A list in which some processes have no device ------------------------------------------------


@DEFAULTS.clause("multi_controller.multi-process-devices.half", expect=everywhere(right(HALF)))
def half(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` with the devices of half of the processes; only these create and call the mapped
    function.
    """
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))
    if HALF.here(cluster):
        listed = [cluster.devices[one] for one in HALF.of(cluster)]
        call(cluster, impl.map(sum_and_number(), devices=listed), passed(impl, cluster, HALF))
    else:
        for name in TWICE:
            cluster.step(name, list)
            cluster.note(LIES_ON, [])


# Legacy pmap's error in a process without a device in the list: an assertion without a message.
NONE_OF_MINE = raises(AssertionError, r"^$", phase="compile")


def of_half(outside: OfEachStep) -> Expectation:
    """Expect this in the processes with devices of the list, and `outside` in the others."""
    values, where = returns(summed_and_numbered(HALF), mistakes={OWN: alone(HALF)}), places(HALF)
    text = f"{values.text} in the processes that have devices in the list, else {outside.text}"
    both = by_process(lambda place: bool(HALF.here(place)), then(values, where, ""), outside, text)
    return every(in_steps(returns(doubled(WIDTH)), CONTROL), in_steps(both, *TWICE))


@DEFAULTS.clause(
    "multi_controller.multi-process-devices.half-called-by-all",
    expect={
        LEGACY_PMAP: of_half(NONE_OF_MINE),
        NEW_PMAP: of_half(NONE_OF_MINE),
        SHARD_MAP: of_half(then(returns(lambda place: []), places(HALF), "returns no rows")),
    },
)
def half_called_by_all(impl: Implementation, cluster: Cluster) -> None:
    """`devices=` with the devices of half of the processes, in a mapped function that all processes
    call.
    """
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))
    listed = [cluster.devices[one] for one in HALF.of(cluster)]
    call(cluster, impl.map(sum_and_number(), devices=listed), passed(impl, cluster, HALF))
