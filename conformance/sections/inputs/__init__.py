"""What the maps take: what the modules about inputs share.

pmap takes each process's own rows as they are; shard_map takes one global array, which JAX makes of
what the processes hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.judging.columns import Columns
from conformance.judging.expectation import Expectation, returns
from conformance.probing.bodies import double, doubled

FIX = "migrate-pmap.fix-stitch-local-data"
TAKEN_AS_THEY_ARE = "pmap takes the process's data as they are"

WIDTH = 2  # of a row, in what the modules share
GLOBAL_SHAPE = "global shape"  # under which a step notes the shape that JAX made

# A step of this name shows that the map works here, so that what follows comes from the data.
CONTROL = returns(doubled(WIDTH), text="what the map itself returns")


def control(impl: Any, cluster: Any) -> None:
    """The step `control`: the map of this process's rows."""
    cluster.step("control", impl.map(double()), impl.given(cluster.rows(WIDTH)))


def unless_shard_map(pmaps: Expectation, shard_map: Expectation) -> Columns:
    """One thing of both pmaps, another of shard_map."""
    return {LEGACY_PMAP: pmaps, NEW_PMAP: pmaps, SHARD_MAP: shard_map}


def sharding_of(mesh: Any, *spec: str | None) -> Any:
    """The NamedSharding of a spec on a mesh."""
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def block_map(impl: Any, sharding: Any, body: Callable[[Any], Any]) -> Any:
    """`body` on every block of an array of this sharding: a jitted shard_map, ranks kept."""
    spec, mesh = sharding.spec, sharding.mesh
    function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    return impl.adopt(function, "jit(shard_map)")
