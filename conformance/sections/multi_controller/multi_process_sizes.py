"""The number of rows that a process passes, and `axis_size=`, in several processes.

Legacy pmap requires a row for each of a process's devices. Rows that are too many or too few are
passed by every process alike, or by one only: then the others wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from conformance.sections.multi_controller.maps import OWN, refused
from conformance.spec.clause import clause, processes
from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.expectation import TWICE, every, hangs, in_steps, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.faults import all_but_the_last
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, doubled, psum
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 2
CONTROL = (
    "control"  # a map of as many rows as there are devices, so that what follows is the size's
)
NO_LOCAL_ROWS = "shard_map's arguments are global: a process has no leading size of its own"
HANG_S = 20.0

REFUSED = (
    r"^On multi-host platforms, the input to pmapped functions must have leading axis size equal "
    r"to the number of local devices if no `devices` argument is specified\. Got axis_size={}, "
    r"num_local_devices=2$"
)


@dataclass(frozen=True, slots=True)
class Size:
    """The number of rows that a process passes; `claim` is about legacy pmap's behaviour."""

    key: str
    text: str
    rows: Callable[[Place], int]
    claim: str


FEWER = "pmap-silence.fewer-rows-than-devices"
MORE = "pmap-silence.more-rows-than-devices"

SIZES: Mapping[str, Size] = table(
    Size("one-too-few", "one row for two devices", lambda place: 1, FEWER),
    Size("one-too-many", "three rows for two devices", lambda place: 3, MORE),
    Size("all-rows", "a row for each device of all processes", lambda p: p.topology.devices, MORE),
)


def rows(place: Place, count: int) -> Any:
    """Return so many rows, different in each process."""
    return np.arange(1, 1 + count * WIDTH, dtype=np.float32).reshape(count, WIDTH) + place.process


def control(impl: Implementation, cluster: Cluster) -> None:
    """A map with a row for each device."""
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))


CONTROLLED = in_steps(returns(doubled(WIDTH)), CONTROL)


def as_legacy(size: Size) -> Columns:
    """Expect legacy pmap's error; if it raises none, the rows doubled."""

    # The number of rows is in the message.
    counts = {"one-too-few": "1", "one-too-many": "3", "all-rows": "[48]"}
    message = REFUSED.format(counts[size.key])

    @described("each of the rows, doubled")
    def taken(place: Place) -> Any:
        return rows(place, size.rows(place)) * 2

    says = raises(ValueError, message, phase="lower", otherwise=taken)
    return of_pmaps(every(CONTROLLED, in_steps(says, *TWICE)), NO_LOCAL_ROWS)


@family(
    "multi_controller.multi-process-rows.{size}",
    size=SIZES,
    claim="{size.claim}",
    title="Every process passes {size.text}.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=HANG_S,
    expect=as_legacy,
)
def sized(impl: Implementation, cluster: Cluster, size: Size) -> None:
    """Every process passes as many rows too many or too few."""
    control(impl, cluster)
    cluster.twice(impl.map(double()), rows(cluster, size.rows(cluster)))


@clause(
    "multi_controller.multi-process-rows.too-few-in-one",
    claim=FEWER,
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=HANG_S,
    expect=of_pmaps(hangs("first call", all_but_the_last), NO_LOCAL_ROWS),
)
def too_few_in_one(impl: Implementation, cluster: Cluster) -> None:
    """The last process passes one row too few to a psum: it gets an error, and the others wait."""
    # A psum as it should be comes first: a CPU gives up after 30 s on the first of some devices.
    cluster.step(CONTROL, impl.map(psum()), impl.given(cluster.rows(WIDTH)))
    last = cluster.process == cluster.topology.processes - 1
    cluster.twice(impl.map(psum()), rows(cluster, 1 if last else 2))


@described("the sum of all rows, once per device of this process")
def summed_per_device(place: Place) -> Any:
    total = place.all_rows(WIDTH).sum(0)
    return np.broadcast_to(total, (place.topology.devices_per_process, WIDTH))


@clause(
    "multi_controller.multi-process-rows.compared-first",
    claim=FEWER,
    title=(
        "Processes gather their numbers of rows before a psum: if one has a row too few, all raise "
        "and none waits."
    ),
    fixes="multi_controller.multi-process-rows.too-few-in-one",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=HANG_S,
    expect=of_pmaps(
        every(
            in_steps(returns(summed_per_device), CONTROL),
            in_steps(raises(ValueError, r"^numbers of rows: \[2, (2, 2, )?1\]$"), *TWICE),
        ),
        NO_LOCAL_ROWS,
    ),
)
def compared_first(impl: Implementation, cluster: Cluster) -> None:
    """Gather the number of rows of every process, and call the mapped function if all agree."""
    mapped = impl.map(psum())

    def checked(x: Any) -> Any:
        counts = multihost_utils.process_allgather(np.int32(len(x))).tolist()
        if len({*counts}) > 1:
            raise ValueError(f"numbers of rows: {counts}")
        return mapped(x)

    cluster.step(CONTROL, checked, cluster.rows(WIDTH))
    last = cluster.process == cluster.topology.processes - 1
    cluster.twice(checked, rows(cluster, 1 if last else 2))


# --- axis_size ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AxisSize:
    """An `axis_size`, and what legacy answers.

    Legacy takes a process's own number of devices for what it is: every process has its own map.
    """

    key: str
    text: str
    of: Callable[[Place], int]
    answer: Expectation
    topologies: tuple[str, ...] = SEVERAL_PROCESSES


def added_and_counted() -> Callable[[Any], Any]:
    """A row plus the sum of all rows, and the axis's size."""
    return lambda x: [x + jax.lax.psum(x, "i"), jax.numpy.int32(jax.lax.psum(1, "i"))]


@described("each row plus the sum of all rows, and the number of devices")
def over_all(place: Place) -> Any:
    count = place.topology.devices
    held = place.rows(WIDTH) + place.all_rows(WIDTH).sum(0)
    return [held, np.full(len(held), count, np.int32)]


@described("each row plus the sum of this process's rows, and the number of its devices")
def over_own(place: Place) -> Any:
    held = place.rows(WIDTH)
    return [held + held.sum(0), np.full(len(held), len(held), np.int32)]


@described("each row plus the sum of the first half of all rows, and half of the number of devices")
def over_half(place: Place) -> Any:
    count, held = place.topology.devices // 2, place.rows(WIDTH)
    return [held + place.all_rows(WIDTH)[:count].sum(0), np.full(len(held), count, np.int32)]


RIGHT = returns(over_all, mistakes={OWN: over_own})
TOO_LARGE = r"^compiling computation that requires [59] logical devices, but only [48] XLA devices"
NO_GRID = r"^cannot reshape array of size 8 into shape \(4,1\)$"

AXIS_SIZES: Mapping[str, AxisSize] = table(
    AxisSize("all", "the number of all devices", lambda place: place.topology.devices, RIGHT),
    AxisSize(
        "own",
        "the number of a process's devices",
        lambda place: place.topology.devices_per_process,
        returns(over_own, mistakes={"the same over the devices of all processes": over_all}),
    ),
    AxisSize(
        "one-more",
        "one more than the number of devices",
        lambda place: place.topology.devices + 1,
        raises(ValueError, TOO_LARGE, phase="compile", otherwise=over_all),
    ),
    AxisSize(
        "half",
        "half of the number of devices",
        lambda place: place.topology.devices // 2,
        refused(
            ValueError,
            NO_GRID,
            phase="compile",
            otherwise=over_all,
            mistakes={"the sum over the devices of the first half of the processes": over_half},
        ),
        topologies=FOUR_PROCESSES,  # half of two processes is one of them
    ),
)


@family(
    "multi_controller.multi-process-axis-size.{size}",
    size=AXIS_SIZES,
    claim="pmap-silence.axis-arguments",
    title="`axis_size=` with {size.text}, in several processes.",
    needs=processes(2),
    left_out=lambda size: (
        "with two processes, half of the devices are one process's: multi-process-axis-size.own"
        if size.topologies == FOUR_PROCESSES
        else ""
    ),
    deadline_s=HANG_S,
    expect=lambda size: of_pmaps(
        every(CONTROLLED, in_steps(size.answer, *TWICE)),
        "shard_map has no axis_size: its mesh has a size",
    ),
)
def with_axis_size(impl: Implementation, cluster: Cluster, size: AxisSize) -> None:
    """Call a mapped function whose `axis_size` is its length over all processes."""
    control(impl, cluster)
    function = impl.map(added_and_counted(), axis_size=size.of(cluster))
    cluster.twice(function, cluster.rows(WIDTH))
