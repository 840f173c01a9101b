"""The devices of the rows that a loop over an output gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance.sections.indexing import output, rows_of
from conformance.sections.indexing.committed import DEFAULTS
from conformance.spec.clause import devices
from conformance.spec.columns import of_pmaps
from conformance.spec.expectation import TWICE, every, in_steps, noted, returns
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

PLACES = "devices"


def on_its_own(place: Place, seen: Any) -> bool:
    """Return whether row k is on this process's device k."""
    return bool(seen == [*range(place.topology.devices_per_process)])


IN_PLACE = of_pmaps(
    in_steps(
        every(
            returns(lambda place: list(rows_of(place, LEGACY_PMAP)), text="the rows"),
            noted(PLACES, "row k is on the process's device k", on_its_own),
        ),
        *TWICE,
    ),
    "under shard_map the output has the rows of all processes",
)


def read_twice(
    impl: Implementation, cluster: Cluster, rows_of_output: Callable[[Any], Iterable[Any]]
) -> None:
    """Read the rows of a new output twice, and note the device of each, by its number here."""
    numbers = {device: number for number, device in enumerate(cluster.local_devices)}
    for step in TWICE:
        rows = cluster.step(step, lambda: [*rows_of_output(output(impl, cluster))]) or []
        cluster.note(PLACES, [numbers[device] for row in rows for device in row.devices()])


@DEFAULTS.clause(
    "indexing.iterated.devices",
    title="Each row of `for row in out` is on the device that computed it.",
    needs=devices(2),
    expect=IN_PLACE,
)
def iterated(impl: Implementation, cluster: Cluster) -> None:
    """The rows of a loop over an output."""
    read_twice(impl, cluster, iter)


@DEFAULTS.clause(
    "indexing.iterated.shards",
    title="Each `shard.data` of `out.addressable_shards` is on the device that computed it.",
    fixes="indexing.iterated.devices",
    needs=devices(2),
    expect=IN_PLACE,
)
def shards(impl: Implementation, cluster: Cluster) -> None:
    """The rows of a loop over an output's shards, without their mapped axis."""
    read_twice(impl, cluster, lambda out: (one.data.squeeze(0) for one in out.addressable_shards))
