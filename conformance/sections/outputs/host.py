"""Every way from a map's output to the host, and which of them one process alone cannot take.

With one process all of them work. With several, pmap's output is still all here, shard_map's is
not, and one document's promise (`device_get`) meets the other's error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, raises, returns

SEVERAL = ("2x2", "4x2")
EVERYWHERE = ("1x8", *SEVERAL)

SIZE = 3

DEVICE_GET = "migrate-pmap.host-access-device-get"
INDEXING = "migrate-pmap.host-access-indexing"
ITERATION = "pmap-silence.host-access-iteration"
NOT_HERE = "multi-process.print-non-addressable"
SHARDS = "multi-process.addressable-shards-in-some-processes"
GATHER = "multi-process.fix-process-allgather"
REPLICATE = "multi-process.fix-replicate-then-print"


def own(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(SIZE) * 2


def everything(place: Place) -> Any:
    """all processes' rows, doubled"""
    return place.all_rows(SIZE) * 2


def first_own(place: Place) -> Any:
    """the first of this process's rows"""
    return own(place)[:1]


def output(impl: Any, cluster: Any) -> Any:
    """A map's output: one row of three per device."""
    return impl.map(lambda x: x * 2)(impl.given(cluster.rows(SIZE)))


def view(own: Any, everything: Any) -> dict[str, Expectation]:
    """pmap's user sees this process's rows, shard_map's the global array."""
    return {
        LEGACY_PMAP: returns(own),
        NEW_PMAP: returns(own),
        SHARD_MAP: returns(everything),
    }


def printed(array: Any) -> Any:
    """The numbers in what `print` would write, in order; the text where it is something else."""
    text = str(array)
    if text.startswith("Array("):
        return text
    words = text.replace("[", " ").replace("]", " ").split()
    return np.array([float(word) for word in words], np.float32)


def flattened(model: Callable[[Place], Any]) -> Callable[[Place], Any]:
    """The model's values in order."""

    def flat(place: Place) -> Any:
        return model(place).reshape(-1)

    flat.__doc__ = model.__doc__
    return flat


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the host: the claim that it is made for, and the program.

    `flat` says that the values come without their shape; `promised` that a document says that it
    works, with however many processes.
    """

    name: str
    said: str
    claim: str
    program: Callable[[Any], Any]
    flat: bool = False
    promised: bool = False


WAYS = (
    Way("device-get", "jax.device_get(x)", DEVICE_GET, jax.device_get, promised=True),
    Way(
        "device-get-tree",
        "jax.device_get({'a': [x]})",
        DEVICE_GET,
        lambda x: jax.device_get({"a": [x]})["a"][0],
        promised=True,
    ),
    Way("asarray", "np.asarray(x)", DEVICE_GET, np.asarray),
    Way("array", "np.array(x)", DEVICE_GET, np.array),
    Way("tolist", "x.tolist()", DEVICE_GET, lambda x: np.array(x.tolist(), np.float32)),
    Way("print", "str(x)", DEVICE_GET, printed, flat=True),
    Way(
        "numpy-function",
        "np.concatenate([x])",
        DEVICE_GET,
        lambda x: np.concatenate([x]),
    ),
    Way("index-whole", "np.asarray(x[:])", INDEXING, lambda x: np.asarray(x[:]), promised=True),
    Way(
        "index-ellipsis",
        "np.asarray(x[...])",
        INDEXING,
        lambda x: np.asarray(x[...]),
        promised=True,
    ),
)
WAY = {way.name: way for way in WAYS}

CANNOT = raises(
    RuntimeError, "spans non-addressable.*process_allgather.*addressable_shards", otherwise=own
)


def fetch(impl: Any, cluster: Any, way: str) -> None:
    """All of a map's output, brought to the host in one of many ways."""
    cluster.twice(WAY[way].program, output(impl, cluster))


for one in WAYS:
    whole = flattened(everything) if one.flat else everything
    local = flattened(own) if one.flat else own
    clause(
        f"outputs.host.{one.name}",
        claim=one.claim,
        topologies=("1x8", "4x2") if one.promised else ONE_PROCESS,
        expect=view(local, whole),
        parameters={"way": one.name},
        title=f"`{one.said}` of a map's output",
    )(fetch)
    if one.claim == DEVICE_GET:
        clause(
            f"outputs.not-here.{one.name}",
            claim=NOT_HERE,
            needs=processes(2),
            topologies=SEVERAL,
            expect={LEGACY_PMAP: returns(local), NEW_PMAP: returns(local), SHARD_MAP: CANNOT},
            parameters={"way": one.name},
            title=f"`{one.said}` of an array that spans processes (pmap's does not)",
        )(fetch)


# --- Row by row -----------------------------------------------------------------------------------


@clause(
    "outputs.host.index-first",
    claim=INDEXING,
    topologies=EVERYWHERE,
    expect=view(lambda place: own(place)[0], lambda place: everything(place)[0]),
)
def index_first(impl: Any, cluster: Any) -> None:
    """`np.asarray(x[0])` of a map's output."""
    cluster.twice(lambda x: np.asarray(x[0]), output(impl, cluster))


@clause(
    "outputs.host.index-last",
    claim=INDEXING,
    topologies=EVERYWHERE,
    expect=view(lambda place: own(place)[-1], lambda place: everything(place)[-1]),
)
def index_last(impl: Any, cluster: Any) -> None:
    """`np.asarray(x[-1])` of a map's output."""
    cluster.twice(lambda x: np.asarray(x[-1]), output(impl, cluster))


@clause(
    "outputs.host.index-number",
    claim=INDEXING,
    topologies=EVERYWHERE,
    expect=view(lambda place: own(place)[1, 2], lambda place: everything(place)[1, 2]),
)
def index_number(impl: Any, cluster: Any) -> None:
    """`float(x[1, 2])` of a map's output."""
    cluster.twice(lambda x: np.float32(float(x[1, 2])), output(impl, cluster))


def _rows(model: Callable[[Place], Any]) -> Callable[[Place], Any]:
    def rows(place: Place) -> Any:
        return list(model(place))

    rows.__doc__ = f"{(model.__doc__ or '').strip()}, one by one"
    return rows


@clause(
    "outputs.host.iterate",
    claim=ITERATION,
    topologies=EVERYWHERE,
    expect=view(_rows(own), _rows(everything)),
)
def iterate(impl: Any, cluster: Any) -> None:
    """`[np.asarray(row) for row in x]` of a map's output."""
    cluster.twice(lambda x: [np.asarray(row) for row in x], output(impl, cluster))


@clause(
    "outputs.host.reversed",
    claim=ITERATION,
    topologies=("1x8", "4x2"),
    expect=view(
        _rows(lambda place: own(place)[::-1]), _rows(lambda place: everything(place)[::-1])
    ),
)
def iterate_reversed(impl: Any, cluster: Any) -> None:
    """`[np.asarray(row) for row in reversed(x)]` of a map's output."""
    cluster.twice(lambda x: [np.asarray(row) for row in reversed(x)], output(impl, cluster))


# --- One number -----------------------------------------------------------------------------------


def total(place: Place) -> Any:
    """the sum over all processes"""
    return place.all_rows().sum()


NUMBERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "float": ("float(x)", float),
    "item": ("x.item()", lambda x: x.item()),
    "int": ("int(x)", int),
    "format": ("f'{x:.1f}'", lambda x: float(f"{x:.1f}")),
}


def replicated_number(impl: Any, cluster: Any, number: str) -> None:
    """A sum over all devices, returned once (`out_axes=None`)."""
    function = impl.map(lambda x: jax.lax.psum(x, "i"), out_axes=None)
    array = function(impl.given(cluster.rows()))
    cluster.twice(lambda x: np.float32(NUMBERS[number][1](x)), array)


for number, (said, _) in NUMBERS.items():
    clause(
        f"outputs.host.number.{number}",
        claim=DEVICE_GET,
        topologies=("1x8", "4x2"),
        expect=dict.fromkeys(IMPLEMENTATIONS, returns(total)),
        parameters={"number": number},
        title=f"`{said}` of a sum that every device returned once (`out_axes=None`)",
    )(replicated_number)


# --- The part that is here ------------------------------------------------------------------------

LOCAL: dict[str, tuple[str, Callable[[Any], Any], Callable[[Place], Any]]] = {
    "shards": (
        "[s.data for s in x.addressable_shards]",
        lambda x: np.concatenate([np.asarray(s.data) for s in x.addressable_shards]),
        own,
    ),
    "shard-index": (
        "x.addressable_shards[0].index",
        lambda x: np.array([x.addressable_shards[0].index[0].start or 0]),
        lambda place: np.array([0]),
    ),
    "data": ("x.addressable_data(0)", lambda x: np.asarray(x.addressable_data(0)), first_own),
}


def first_index(place: Place) -> Any:
    """the number of this process's first row in the global array"""
    return np.array([place.first_row])


def part_here(impl: Any, cluster: Any, which: str) -> None:
    """What this process holds of a map's output."""
    cluster.twice(LOCAL[which][1], output(impl, cluster))


for which, (said, _, model) in LOCAL.items():
    clause(
        f"outputs.host.local.{which}",
        claim=SHARDS,
        topologies=EVERYWHERE,
        expect=view(model, first_index if which == "shard-index" else model),
        parameters={"which": which},
        title=f"`{said}` of a map's output",
    )(part_here)


@clause(
    "outputs.host.local.one-process-reads",
    claim=SHARDS,
    needs=processes(2),
    topologies=SEVERAL,
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(lambda place: own(place) * (place.process == 0))),
)
def one_process_reads(impl: Any, cluster: Any) -> None:
    """Process 0 alone reads its shards of a map's output."""
    array = output(impl, cluster)

    def read() -> Any:
        if jax.process_index() != 0:
            return np.zeros((cluster.topology.devices_per_process, SIZE), np.float32)
        return np.concatenate([np.asarray(s.data) for s in array.addressable_shards])

    cluster.twice(read)


# --- All of it, with the other processes' help ----------------------------------------------------


@clause(
    "outputs.host.allgather",
    claim=GATHER,
    topologies=EVERYWHERE,
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(everything)),
)
def allgather(impl: Any, cluster: Any) -> None:
    """`process_allgather(x, tiled=True)` of a map's output: everything, in every process."""
    cluster.twice(lambda x: multihost_utils.process_allgather(x, tiled=True), output(impl, cluster))


def by_process(place: Place) -> Any:
    """all processes' rows, doubled, one block per process"""
    shape = (place.topology.processes, place.topology.devices_per_process, SIZE)
    return everything(place).reshape(shape)


@clause(
    "outputs.host.allgather-untiled",
    claim=GATHER,
    needs=processes(2),
    topologies=SEVERAL,
    expect=view(by_process, everything),
)
def allgather_untiled(impl: Any, cluster: Any) -> None:
    """`process_allgather(x)` as the document writes it: stacked where the array is host-local."""
    cluster.twice(lambda x: multihost_utils.process_allgather(x), output(impl, cluster))


@clause(
    "outputs.host.replicate-then-fetch",
    claim=REPLICATE,
    topologies=EVERYWHERE,
    expect=view(own, everything),
)
def replicate_then_fetch(impl: Any, cluster: Any) -> None:
    """The output is replicated by `device_put`, then fetched."""
    everywhere = impl.sharding(axis=None)
    cluster.twice(lambda x: np.asarray(jax.device_put(x, everywhere)), output(impl, cluster))
