"""All ways to fetch an output to the host, and which of them a single process cannot use alone.

In one process all of them work. In several, pmap's output is still local, shard_map's is not, and
one document's promise (`device_get`) contradicts another's error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.outputs import (
    doubled_rows,
    everything,
    first_of_all,
    first_own,
    host_sees,
    ours,
    unless_shard_map,
)
from conformance.spec.arrays import returns_host
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import Columns, everywhere
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises
from conformance.spec.family import family, table
from conformance.spec.texts import described, text_of
from conformance.spec.topology import (
    ONE_AND_FOUR,
    ONE_AND_SEVERAL,
    ONE_PROCESS,
    SEVERAL_PROCESSES,
    Place,
)
from conformance.worker.bodies import psum
from conformance.worker.protocols import Cluster, Implementation

DEVICE_GET = "migrate-pmap.host-access-device-get"
INDEXING = "migrate-pmap.host-access-indexing"
CONVERTING = "pmap-silence.host-access-conversions"

# Facts that several clauses vary.
FETCHED = "outputs.host.fetch"
ITERATED = "outputs.host.iterate"
NOT_HERE = "outputs.not-here"

DEFAULTS = Defaults(claim=INDEXING, topologies=ONE_AND_SEVERAL, fact="outputs.host.index")


def printed(array: Any) -> Any:
    """The numbers in what `print` would write, in order; the text where it is something else."""
    text = str(array)
    if text.startswith("Array("):
        return text
    words = text.replace("[", " ").replace("]", " ").split()
    return np.array([float(word) for word in words], np.float32)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to bring all of an array to the host.

    `flat` says that the values come without their shape. Ways of one `fact` vary one finding, and
    so do those of one `not_here`, which is the finding where an array spans processes.
    """

    key: str
    text: str
    program: Callable[[Any], Any]
    flat: bool = False
    fact: str = FETCHED
    not_here: str = NOT_HERE

    def model(self, rows: Model) -> Model:
        """Return NumPy's result of this way, for such rows."""

        @described(text_of(rows))
        def model(place: Place) -> Any:
            return rows(place).reshape(-1) if self.flat else rows(place)

        return model


GETS: Mapping[str, Way] = table(
    Way("device-get", "jax.device_get(x)", jax.device_get, fact="outputs.host.device-get"),
    Way(
        "device-get-tree",
        "jax.device_get({'a': [x]})",
        lambda x: jax.device_get({"a": [x]})["a"][0],
        fact="outputs.host.device-get",
    ),
)

CONVERSIONS: Mapping[str, Way] = table(
    Way("asarray", "np.asarray(x)", np.asarray),
    Way("array", "np.array(x)", np.array),
    Way("tolist", "x.tolist()", lambda x: np.array(x.tolist(), np.float32)),
    Way("print", "str(x)", printed, flat=True, not_here="outputs.not-here.print"),
    Way("numpy-function", "np.concatenate([x])", lambda x: np.concatenate([x])),
)

INDICES: Mapping[str, Way] = table(
    Way(
        "index-whole",
        "np.asarray(x[:])",
        lambda x: np.asarray(x[:]),
        fact="outputs.host.index-whole",
    ),
    Way(
        "index-ellipsis",
        "np.asarray(x[...])",
        lambda x: np.asarray(x[...]),
        fact="outputs.host.index-whole",
    ),
)


def fetched(way: Way) -> Columns:
    """All of what its user sees."""
    return host_sees(way.model(ours), way.model(everything))


REMEDIES = (
    r"spans non-addressable \(non process local\) devices is not possible\. .*"
    r"`jax\.experimental\.multihost_utils\.process_allgather` .*`\.addressable_shards`"
)


def fetched_unless_elsewhere(way: Way) -> Columns:
    """All of pmap's output; of an array that spans processes an error that names the remedies."""
    return unless_shard_map(
        returns_host(way.model(ours)), raises(RuntimeError, REMEDIES, phase="fetch", otherwise=ours)
    )


# A document says that `device_get` and indexing work, with however many processes.
@family(
    "outputs.host.{way}",
    way={**GETS, **INDICES},
    claim=lambda way: INDEXING if way.key in INDICES else DEVICE_GET,
    title="`{way.text}` of a mapped function's output",
    topologies=ONE_AND_FOUR,
    expect=fetched,
)
@family(
    "outputs.host.{way}",
    way=CONVERSIONS,
    claim=CONVERTING,
    title="`{way.text}` of a mapped function's output",
    topologies=ONE_PROCESS,
    left_out="outputs.not-here.{way} tests several processes",
    expect=fetched,
)
@family(
    "outputs.not-here.{way}",
    way={**GETS, **CONVERSIONS},
    claim="multi-process.print-non-addressable",
    title="`{way.text}` of an output that spans processes (pmap's does not)",
    fact=lambda way: way.not_here,
    cause="global-array-cannot-be-fetched",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=fetched_unless_elsewhere,
)
def fetch(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """Fetch an output to the host in one of many ways."""
    cluster.twice(way.program, doubled_rows(impl, cluster))


# --- Row by row -----------------------------------------------------------------------------------


@described("the last of this process's rows, doubled")
def last_own(place: Place) -> Any:
    return ours(place)[-1]


@described("the last of all rows, doubled")
def last_of_all(place: Place) -> Any:
    return everything(place)[-1]


@described("a number of this process's second row, doubled")
def number_of_own(place: Place) -> Any:
    return ours(place)[1, 2]


@described("a number of the second of all rows, doubled")
def number_of_all(place: Place) -> Any:
    return everything(place)[1, 2]


@DEFAULTS.clause("outputs.host.index-first", expect=host_sees(first_own, first_of_all))
def index_first(impl: Implementation, cluster: Cluster) -> None:
    """`np.asarray(x[0])` of a mapped function's output."""
    cluster.twice(lambda x: np.asarray(x[0]), doubled_rows(impl, cluster))


@DEFAULTS.clause("outputs.host.index-last", expect=host_sees(last_own, last_of_all))
def index_last(impl: Implementation, cluster: Cluster) -> None:
    """`np.asarray(x[-1])` of a mapped function's output."""
    cluster.twice(lambda x: np.asarray(x[-1]), doubled_rows(impl, cluster))


@DEFAULTS.clause(
    "outputs.host.index-number",
    needs=devices(2),  # for a second row
    expect=host_sees(number_of_own, number_of_all),
)
def index_number(impl: Implementation, cluster: Cluster) -> None:
    """`float(x[1, 2])` of a mapped function's output."""
    cluster.twice(lambda x: np.float32(float(x[1, 2])), doubled_rows(impl, cluster))


def _one_by_one(model: Model) -> Model:
    @described(f"{_said(model)}, one by one")
    def rows(place: Place) -> Any:
        return list(model(place))

    return rows


def _backwards(model: Model) -> Model:
    @described(f"{_said(model)}, one by one from the last")
    def rows(place: Place) -> Any:
        return list(model(place))[::-1]

    return rows


def _said(model: Model) -> str:
    """Return a model's text; ValueError if it has none, because the expectation needs it."""
    text = text_of(model)
    if not text:
        raise ValueError(f"{model} has no text: decorate it with @described")
    return text


@DEFAULTS.clause(
    "outputs.host.iterate",
    claim="pmap-silence.host-access-iteration",
    fact=ITERATED,
    expect=host_sees(_one_by_one(ours), _one_by_one(everything)),
)
def iterate(impl: Implementation, cluster: Cluster) -> None:
    """`[np.asarray(row) for row in x]` of a mapped function's output."""
    cluster.twice(lambda x: [np.asarray(row) for row in x], doubled_rows(impl, cluster))


@clause(
    "outputs.host.reversed",
    claim="pmap-silence.host-access-iteration",
    fact=ITERATED,
    topologies=ONE_AND_FOUR,
    expect=host_sees(_backwards(ours), _backwards(everything)),
)
def iterate_reversed(impl: Implementation, cluster: Cluster) -> None:
    """`[np.asarray(row) for row in reversed(x)]` of a mapped function's output."""
    cluster.twice(lambda x: [np.asarray(row) for row in reversed(x)], doubled_rows(impl, cluster))


# --- One number -----------------------------------------------------------------------------------


@described("the sum over all processes")
def sum_of_all(place: Place) -> Any:
    return place.all_rows().sum()


@dataclass(frozen=True, slots=True)
class Conversion:
    """One way to a Python number."""

    key: str
    text: str
    program: Callable[[Any], Any]


NUMBERS: Mapping[str, Conversion] = table(
    Conversion("float", "float(x)", float),
    Conversion("item", "x.item()", lambda x: x.item()),
    Conversion("int", "int(x)", int),
    Conversion("format", "f'{x:.1f}'", lambda x: float(f"{x:.1f}")),
)


@family(
    "outputs.host.number.{number}",
    number=NUMBERS,
    claim=CONVERTING,
    title="`{number.text}` of a psum that is returned once (`out_axes=None`)",
    fact="outputs.host.number",
    topologies=ONE_AND_FOUR,
    expect=everywhere(returns_host(sum_of_all)),
)
def replicated_number(impl: Implementation, cluster: Cluster, number: Conversion) -> None:
    """A sum over all devices, returned once (`out_axes=None`)."""
    function = impl.map(psum(), out_axes=None)
    array = function(impl.given(cluster.rows()))
    cluster.twice(lambda x: np.float32(number.program(x)), array)
