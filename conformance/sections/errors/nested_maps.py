"""Maps inside maps: what both modules of clauses on them expect, and the mesh of both axes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.errors import INNER, OUTER, grid
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import not_applicable, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster

NESTED = "errors.context-mesh.nested"  # whatever is between the two pmaps


def refused(model: Model) -> Expectation:
    """The documented error."""
    message = (
        r"^The context mesh AbstractMesh\(.*\) should match the mesh passed to shard_map Mesh\("
    )
    return raises(ValueError, message, phase="trace", otherwise=model)


@described("at every point of this process's part of the grid, the sum over all of it")
def grid_summed(place: Place) -> Any:
    outer = place.topology.devices_per_process // INNER
    return np.broadcast_to(grid(place).sum((0, 1)), (outer, INNER, 3))


def mesh_of_two_axes(cluster: Cluster) -> jax.sharding.Mesh:
    """The outer and the inner map's axes in one mesh."""
    chosen = np.array(cluster.devices[: OUTER * INNER]).reshape(OUTER, INNER)
    return jax.sharding.Mesh(chosen, ("i", "j"))


def nested(model: Model) -> Columns:
    """Legacy nests; the new pmap refuses; shard_map is what the fixes use."""
    return {
        LEGACY_PMAP: returns(model),
        NEW_PMAP: refused(model),
        SHARD_MAP: not_applicable("the clause is about pmap inside pmap"),
    }
