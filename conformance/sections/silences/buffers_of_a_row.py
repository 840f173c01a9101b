"""A row of an output by index, given to Python's buffer protocol, and the address of its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.buffers-of-a-row",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    on_cpu=True,  # Python reads no other memory
)


def by_address(row: Any) -> Any:
    """The numbers that are at the address of an array's memory."""
    address = ctypes.cast(row.unsafe_buffer_pointer(), ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(address, (WIDTH,)).copy()


@dataclass(frozen=True, slots=True)
class Read:
    """A way to read a row's memory."""

    key: str
    text: str
    read: Callable[[Any], Any]


READS: Mapping[str, Read] = table(
    Read("memoryview", "`memoryview(out[0])`", lambda row: np.array(memoryview(row))),
    Read(
        "frombuffer",
        "`np.frombuffer(out[0], np.float32)`",
        lambda row: np.frombuffer(row, np.float32).copy(),
    ),
    Read("address", "`out[0].unsafe_buffer_pointer()`", by_address),
)


def output(impl: Implementation, cluster: Cluster) -> Any:
    """A mapped function's output."""
    return impl.map(double())(impl.given(cluster.rows(WIDTH)))


@described("the first row, doubled")
def first_row(place: Place) -> Any:
    return place.rows(WIDTH)[0] * 2


@DEFAULTS.family(
    "silences.buffer-of-a-row.{read}",
    read=READS,
    title="{read.text} reads the first row of an output.",
    expect=everywhere(twice(returns(first_row))),
)
def by_index(impl: Implementation, cluster: Cluster, read: Read) -> None:
    """The memory of a row by index, read twice."""
    row = output(impl, cluster)[0]
    cluster.twice(lambda: read.read(row))


@described("the first row, doubled, as often as it is read")
def first_row_by_each(place: Place) -> Any:
    return [first_row(place)] * len(READS)


@DEFAULTS.clause(
    "silences.buffer-of-a-row.shard",
    title="A memoryview, np.frombuffer and unsafe_buffer_pointer of an output's first shard read "
    "the first row.",
    fixes="silences.buffer-of-a-row.memoryview",
    expect=everywhere(twice(returns(first_row_by_each))),
)
def of_a_shard(impl: Implementation, cluster: Cluster) -> None:
    """The memory of the data of a shard, read in each way, twice."""
    shard = output(impl, cluster).addressable_shards[0].data
    cluster.twice(lambda: [np.reshape(read.read(shard), WIDTH) for read in READS.values()])
