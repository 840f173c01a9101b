"""A map's output fed back, to the same map or to another one, in several processes.

Every map that takes an output sums over all rows that it spans, so that an output that is taken for
more, or for less, than it is shows in the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.multi_controller.maps import OWN, Rows
from conformance.spec.clause import processes
from conformance.spec.columns import Columns, everywhere, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation, Mapped

WIDTH = 2
SUBSET = "pmap-silence.feeding-back-a-subset"
OF_A_PROCESS = "the rows of one process's array are no argument of a shard_map over all devices"

Program = Callable[[], Any]


def summing(impl: Implementation, **options: Any) -> Mapped:
    """A map of each row plus the sum of all rows."""
    return impl.map(lambda x: x + jax.lax.psum(x, "i"), **options)


def total(impl: Implementation) -> Mapped:
    """A map of the sum of all rows, once."""
    return impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)


def summed(rows: Rows) -> Rows:
    """Return the model of `summing` for the rows that it spans."""
    return np.asarray(rows + rows.sum(0))


def count(place: Place) -> int:
    """Devices of a process."""
    return place.topology.devices_per_process


# Each program, and beside it what it makes of all rows, as this process holds it, and what it would
# make of this process's rows, did the maps span no others.


def again_and_again(impl: Implementation, cluster: Cluster) -> Program:
    """The output is fed back to its own map, twice."""
    function, rows = summing(impl), impl.given(cluster.rows(WIDTH))
    return lambda: function(function(function(rows)))


@described("the rows and their sum, three times over")
def again_over_all(place: Place) -> Any:
    return place.mine(summed(summed(summed(place.all_rows(WIDTH)))))


def again_alone(place: Place) -> Any:
    return summed(summed(summed(place.rows(WIDTH))))


def along_axis_1(impl: Implementation, cluster: Cluster) -> Program:
    """Pass an output of out_axes=1 to in_axes=1."""
    first, second = summing(impl, out_axes=1), summing(impl, in_axes=1, out_axes=1)
    rows = impl.given(cluster.rows(WIDTH))
    return lambda: second(first(rows))


@described("the rows and their sum, twice over, as columns")
def columns_over_all(place: Place) -> Any:
    return place.mine(summed(summed(place.all_rows(WIDTH)))).T


def columns_alone(place: Place) -> Any:
    return summed(summed(place.rows(WIDTH))).T


def columns_as_rows(impl: Implementation, cluster: Cluster) -> Program:
    """Pass an output of out_axes=1 to in_axes=0."""
    first, second = summing(impl, out_axes=1), summing(impl)
    rows = cluster.rows(count(cluster))
    return lambda: second(first(rows))


@described("each process's rows and the sum of all, turned, and the sum of all that")
def turned_over_all(place: Place) -> Any:
    each = summed(place.all_rows(count(place))).reshape(-1, count(place), count(place))
    return place.mine(summed(each.swapaxes(1, 2).reshape(-1, count(place))))


def turned_alone(place: Place) -> Any:
    return summed(summed(place.rows(count(place))).T)


def whole_as_whole(impl: Implementation, cluster: Cluster) -> Program:
    """Pass an output of out_axes=None to in_axes=None."""
    first = total(impl)
    second = impl.map(lambda x, w: x + w + jax.lax.psum(x + w, "i"), in_axes=(0, None))
    rows = impl.given(cluster.rows(WIDTH))
    return lambda: second(rows, first(rows))


@described("the rows, each with the sum of all, and the sum of these")
def whole_over_all(place: Place) -> Any:
    return place.mine(summed(summed(place.all_rows(WIDTH))))


def whole_alone(place: Place) -> Any:
    return summed(summed(place.rows(WIDTH)))


def whole_as_rows(impl: Implementation, cluster: Cluster) -> Program:
    """The output of out_axes=None has a row for each device of a process, and is mapped."""
    first, second = total(impl), summing(impl)
    rows = cluster.rows(count(cluster), WIDTH)
    return lambda: second(first(rows))


@described("the same sums in every process, and the sum of all processes' ones")
def mapped_over_all(place: Place) -> Any:
    sums = place.all_rows(count(place), WIDTH).sum(0)
    return sums + sums.sum(0) * place.topology.processes


def mapped_alone(place: Place) -> Any:
    return summed(place.rows(count(place), WIDTH).sum(0))


def of_first_devices(impl: Implementation, cluster: Cluster) -> Program:
    """A map over one device of each process is fed its own output."""
    function = summing(impl, devices=cluster.devices[:: count(cluster)])
    rows = cluster.rows(WIDTH)[:1] if impl.is_pmap else cluster.all_rows(WIDTH)[:: count(cluster)]
    return lambda: function(function(rows))


@described("the processes' first rows and their sum, twice over")
def firsts_over_all(place: Place) -> Any:
    firsts = place.all_rows(WIDTH)[:: count(place)]
    return summed(summed(firsts))[place.process : place.process + 1]


def firsts_alone(place: Place) -> Any:
    return summed(summed(place.rows(WIDTH)[:1]))


def of_own_devices(impl: Implementation, cluster: Cluster) -> Program:
    """Pass an output over a process's own devices to a mapped function over all devices."""
    own, second = impl.map(double(), devices=cluster.local_devices), summing(impl)
    rows = cluster.rows(WIDTH)
    return lambda: second(own(rows))


@described("the rows, doubled, and the sum of all of them")
def doubled_over_all(place: Place) -> Any:
    return place.mine(summed(place.all_rows(WIDTH) * 2))


def doubled_alone(place: Place) -> Any:
    return summed(place.rows(WIDTH) * 2)


def to_own_devices(impl: Implementation, cluster: Cluster) -> Program:
    """Pass an output over all devices to a mapped function over a process's own."""
    first, own = impl.map(double()), summing(impl, devices=cluster.local_devices)
    rows = cluster.rows(WIDTH)
    return lambda: own(first(rows))


@dataclass(frozen=True, slots=True)
class Feed:
    """A program that feeds an output, what it must return, and what it is when it goes wrong.

    `of_pmap` is whether it is about arrays that are a process's own.
    """

    key: str
    text: str
    program: Callable[[Implementation, Cluster], Program]
    right: Model
    mistakes: Mapping[str, Model]
    claim: str = "pmap-silence.feeding-outputs-back"
    of_pmap: bool = False

    @property
    def columns(self) -> Columns:
        """The same of whatever can be asked."""
        expected = twice(returns(self.right, mistakes=self.mistakes))
        return of_pmaps(expected, OF_A_PROCESS) if self.of_pmap else everywhere(expected)


FEEDS: Mapping[str, Feed] = table(
    Feed(
        "out-0",
        "of out_axes=0, to the same mapped function repeatedly",
        again_and_again,
        again_over_all,
        {OWN: again_alone},
    ),
    Feed(
        "out-1",
        "of out_axes=1, to in_axes=1",
        along_axis_1,
        columns_over_all,
        {OWN: columns_alone},
    ),
    Feed(
        "out-1-as-rows",
        "of out_axes=1, to in_axes=0",
        columns_as_rows,
        turned_over_all,
        {OWN: turned_alone},
        of_pmap=True,
    ),
    Feed(
        "out-none",
        "of out_axes=None, to in_axes=None",
        whole_as_whole,
        whole_over_all,
        {OWN: whole_alone},
    ),
    Feed(
        "out-none-as-rows",
        "of out_axes=None, to in_axes=0",
        whole_as_rows,
        mapped_over_all,
        {OWN: mapped_alone},
        of_pmap=True,
    ),
    Feed(
        "first-of-each",
        "over one device of each process, to the same mapped function",
        of_first_devices,
        firsts_over_all,
        {OWN: firsts_alone},
        claim=SUBSET,
    ),
    Feed(
        "from-own",
        "over this process's devices, to a mapped function over all devices",
        of_own_devices,
        doubled_over_all,
        {OWN: doubled_alone},
        claim=SUBSET,
        of_pmap=True,
    ),
    Feed(
        "to-own",
        "over all devices, to a mapped function over this process's devices",
        to_own_devices,
        doubled_alone,
        {"the same over the devices of all processes": doubled_over_all},
        claim=SUBSET,
        of_pmap=True,
    ),
)


@family(
    "multi_controller.multi-process-feeding.{feed}",
    feed=FEEDS,
    claim="{feed.claim}",
    title="In several processes, an output is passed on: {feed.text}.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=30.0,
    expect=lambda feed: feed.columns,
)
def fed(impl: Implementation, cluster: Cluster, feed: Feed) -> None:
    """Run a program that passes an output to a mapped function."""
    cluster.twice(feed.program(impl, cluster))
