"""Parts that the modules about outputs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from conformance.spec.arrays import returns_array, returns_host
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import sharded
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation, Mapped

WIDTH = 3  # of a row

ON_ONE_DEVICE = sharded(
    "SingleDeviceSharding", lambda place, s: s["type"] == "SingleDeviceSharding"
)


def unless_shard_map(pmaps: Expectation, shard_map: Expectation) -> Columns:
    """One thing of both pmaps, another of shard_map."""
    return {LEGACY_PMAP: pmaps, NEW_PMAP: pmaps, SHARD_MAP: shard_map}


ours = doubled(WIDTH)  # the model of what pmap's user sees of `doubled_rows`


@described("all processes' rows, doubled")
def everything(place: Place) -> Any:
    return place.all_rows(WIDTH) * 2


def host_sees(of_pmap: Model, of_shard_map: Model) -> Columns:
    """On the host pmap's user sees this process's rows, shard_map's the global array's."""
    return unless_shard_map(returns_host(of_pmap), returns_host(of_shard_map))


def each_gets(of_pmap: Model, of_shard_map: Model) -> Columns:
    """Expect arrays: this process's rows from pmap, the global array from shard_map."""
    return unless_shard_map(returns_array(of_pmap), returns_array(of_shard_map))


@described("the first of this process's rows, doubled")
def first_own(place: Place) -> Any:
    return ours(place)[0]


@described("the first of all rows, doubled")
def first_of_all(place: Place) -> Any:
    return everything(place)[0]


def doubled_rows(impl: Implementation, cluster: Cluster) -> Any:
    """A map's output: one row per device, doubled."""
    return impl.map(double())(impl.given(cluster.rows(WIDTH)))


def block_map(impl: Implementation, body: Callable[[Any], Any]) -> Mapped:
    """`body` on every device's block of rows: a jitted shard_map, ranks kept."""
    sharding = impl.sharding()
    spec, mesh = sharding.spec, sharding.mesh
    function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    return impl.adopt(function, "jit(shard_map)")
