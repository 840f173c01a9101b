"""A map's output in several processes: put on a mesh over all devices, or indexed out of range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.spec.clause import processes
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, psum
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 2


def rows_held(place: Place, *, pmap: bool) -> int:
    """Return the number of rows of an output in a process: a pmap's is the process's own array."""
    return place.topology.devices_per_process if pmap else place.topology.devices


def by_column(model: Callable[[bool], Model]) -> Columns:
    """A model of both pmaps' output, and one of shard_map's, whose array is all processes'."""
    of_pmap, of_shard_map = twice(returns(model(True))), twice(returns(model(False)))
    return {LEGACY_PMAP: of_pmap, NEW_PMAP: of_pmap, SHARD_MAP: of_shard_map}


# --- On a mesh over all devices -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """The destination of an output under `device_put`; `model` takes the full output and
    the place.
    """

    key: str
    text: str
    spec: Any
    model: Callable[[Place, Any], Any]


def own_columns(place: Place, whole: Any) -> Any:
    """The columns of this process's devices."""
    return whole[:, place.first_row : place.first_row + place.topology.devices_per_process]


PUTS: Mapping[str, Put] = table(
    Put("replicated", "replicated over all devices", P(), lambda place, whole: whole),
    Put("columns", "a column on each device of all processes", P(None, "i"), own_columns),
)


def put_as_told(put: Put) -> Columns:
    """The output, equal in all processes, as it is to lie."""

    def model(pmap: bool) -> Model:
        @described("this process's part of the output that all processes have alike")
        def local_part(place: Place) -> Any:
            total = place.all_rows(place.topology.devices).sum(0)
            return put.model(place, np.tile(total, (rows_held(place, pmap=pmap), 1)))

        return local_part

    return by_column(model)


@family(
    "multi_controller.multi-process-put.{put}",
    put=PUTS,
    claim="migrate-pmap.fix-device-put-global",
    title="An output that is equal in all processes is put on a mesh of all devices: {put.text}.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    deadline_s=30.0,
    expect=put_as_told,
)
def put_globally(impl: Implementation, cluster: Cluster, put: Put) -> None:
    """The output of a psum, which is the same in all processes, put by `device_put`."""
    output = impl.map(psum())(impl.given(cluster.rows(cluster.topology.devices)))
    sharding = NamedSharding(impl.mesh(), put.spec)
    cluster.twice(lambda: jax.device_put(output, sharding))


# --- Out of range ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beyond:
    """An index of no row, given the number of rows here and of all; `row` is the one it means."""

    key: str
    text: str
    index: Callable[[int, int], int]
    row: int


BEYOND: Mapping[str, Beyond] = table(
    Beyond("one-past", "one past the last row", lambda here, _: here, -1),
    Beyond("past-all", "one past the last row of all processes", lambda _, all_rows: all_rows, -1),
    Beyond("below", "one before the first row", lambda here, _: -here - 1, 0),
)


def clamped(beyond: Beyond) -> Columns:
    """The nearest row, as JAX documents an index out of bounds."""

    def model(pmap: bool) -> Model:
        @described("the nearest row, doubled")
        def nearest(place: Place) -> Any:
            rows = place.rows(WIDTH) if pmap else place.all_rows(WIDTH)
            return rows[beyond.row] * 2

        return nearest

    return by_column(model)


@family(
    "multi_controller.multi-process-beyond.{beyond}",
    beyond=BEYOND,
    claim="pmap-silence.multi-process-slice-and-compute",
    title=(
        "In several processes, an output is indexed {beyond.text}: the result is the nearest row."
    ),
    fact="multi_controller.multi-process-beyond",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=clamped,
)
def beyond_the_rows(impl: Implementation, cluster: Cluster, beyond: Beyond) -> None:
    """Index an output with an integer that is out of range."""
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    at = beyond.index(rows_held(cluster, pmap=impl.is_pmap), cluster.topology.devices)
    cluster.twice(lambda: output[at])
