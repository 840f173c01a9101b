"""Slices of outputs under jit, and where the results of maps under vmap lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import every, returns, sharded, twice
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
SLICING = "pmap-silence.output-slicing"


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of an output, by a slice under jit."""

    key: str
    text: str
    take: Callable[[Any], Any]


SLICES: Mapping[str, Slice] = table(
    Slice("half", "`x[:4]`", lambda x: x[:4]),
    Slice("two", "`x[2:4]`", lambda x: x[2:4]),
    Slice("stride", "`x[::2]`", lambda x: x[::2]),
    Slice("rest", "`x[1:]`", lambda x: x[1:]),
)


@family(
    "silences.output.jit-slice.{part}",
    part=SLICES,
    claim=SLICING,
    title="{part.text} of an output, under jit.",
    fact="silences.output.jit-slice",
    needs=devices(COUNT),
    left_out="errors.indexing and indexing.access test outputs in several processes",
    expect=lambda part: everywhere(
        twice(returns(lambda place: part.take(place.rows(WIDTH) * 2), text="the rows, doubled"))
    ),
)
def sliced_under_jit(impl: Implementation, cluster: Cluster, part: Slice) -> None:
    """Take some rows of an output in a jitted function."""
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(jax.jit(lambda x: part.take(x)), output)


@described("two maps' results, one above the other")
def stacked(place: Place) -> Any:
    rows = place.rows(WIDTH) * 2
    return np.stack([rows, rows * 10])


def _on_all(place: Place, sharding: Mapping[str, Any]) -> bool:
    return len(sharding["devices"]) == place.topology.devices_per_process


LOCAL_PUT = "the fix is for programs of one process"


@clause(
    "silences.of-map.vmap-placed",
    claim="pmap-silence.transforms-of-the-map",
    needs=devices(COUNT),
    left_out="multi_controller.map.vmap tests several processes",
    cause="vmap-of-legacy-pmap-gathers",
    expect={
        LEGACY_PMAP: every(
            twice(returns(stacked)),
            sharded("on one device", lambda _, seen: len(seen["devices"]) == 1),
        ),
        NEW_PMAP: every(twice(returns(stacked)), sharded("over all devices", _on_all)),
        SHARD_MAP: every(twice(returns(stacked)), sharded("over all devices", _on_all)),
    },
)
def vmap_placed(impl: Implementation, cluster: Cluster) -> None:
    """A vmap over a new leading axis of a mapped function's argument."""
    rows = cluster.rows(WIDTH)
    function = impl.map(double())
    cluster.twice(jax.vmap(lambda x: function(x)), np.stack([rows, rows * 10]))


@clause(
    "silences.fix.vmap-put-on-one-device",
    claim="pmap-silence.transforms-of-the-map",
    title="device_put puts the result of a vmap of a map on one device.",
    fixes="silences.of-map.vmap-placed",
    needs=devices(COUNT),
    left_out=LOCAL_PUT,
    expect=everywhere(
        every(
            twice(returns(stacked)),
            sharded("on the first device", lambda _, seen: seen["devices"] == [0]),
        )
    ),
)
def vmap_put(impl: Implementation, cluster: Cluster) -> None:
    """A vmap over a new leading axis of a mapped function's argument, put on one device."""
    rows = cluster.rows(WIDTH)
    function, first = impl.map(double()), cluster.local_devices[0]

    def put(both: Any) -> Any:
        return jax.device_put(jax.vmap(lambda x: function(x))(both), first)

    cluster.twice(put, np.stack([rows, rows * 10]))


@clause(
    "silences.fix.vmap-in-the-map",
    claim="pmap-silence.transforms-of-the-map",
    title="A map of a vmap with in_axes=1 and out_axes=1 keeps the result of a vmap of a map "
    "sharded.",
    fixes="silences.of-map.vmap-placed",
    needs=devices(COUNT),
    left_out=LOCAL_PUT,
    expect=everywhere(
        every(twice(returns(stacked)), sharded("over all devices", _on_all)),
    ),
)
def vmap_in_the_map(impl: Implementation, cluster: Cluster) -> None:
    """A vmap in the body, over the leading axis of arguments whose second axis is mapped."""
    rows = cluster.rows(WIDTH)
    function = impl.map(jax.vmap(double()), in_axes=1, out_axes=1)
    cluster.twice(function, np.stack([rows, rows * 10]))
