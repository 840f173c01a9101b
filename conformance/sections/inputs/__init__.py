"""Parts that the modules about inputs share.

pmap accepts each process's own rows; shard_map accepts one global array, which JAX makes of the
processes' rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from conformance.spec.arrays import returns_array
from conformance.spec.codes import Problem, Values, mistaken
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, raises
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import Place, Topology
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation, Mapped

FIX = "migrate-pmap.fix-stitch-local-data"
TAKEN_AS_THEY_ARE = "pmap takes the process's data as they are"

WIDTH = 2  # of a row, in what the modules share

SAMPLE = Place(Topology(4, 2), 0)  # for which an expectation's text is rendered

Shape = tuple[int, ...]
ShapeOf = Callable[[Place], Shape]


def own(*row: int) -> ShapeOf:
    """The shape of an array with a row for each of this process's devices."""
    return lambda place: (place.topology.devices_per_process, *row)


def all_of(*row: int) -> ShapeOf:
    """The shape of an array with a row for each device of the cluster."""
    return lambda place: (place.topology.devices, *row)


@dataclass(frozen=True, slots=True)
class Taken:
    """JAX's result for data that it should refuse: a process's part, and of which array."""

    text: str
    held: Model
    shape: ShapeOf


def refuses(
    error: str, message: Callable[[Place], str], *, phase: str | None = None, taken: Taken
) -> OfEachStep:
    """Every step raises `error`, whose message `message(place)`, a pattern, matches.

    Where it is `taken` instead, that is said by name.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return raises(error, message(place), phase=phase).check_step(place, step)
        as_taken = returns_array(taken.held, taken.shape).check_step(place, step)[0]
        if as_taken:
            return False, mistaken(taken.text, str(step))
        return False, Problem(f"WRONG: {step}", values=Values.WRONG)

    patterns = f"/{message(SAMPLE)}/ on {SAMPLE.topology}" + (f" in {phase}" if phase else "")
    text = f"raises {error} whose message matches {patterns}"
    return OfEachStep(text, check_step, error=True)


# A step of this name shows that the mapped function works here, so that later errors come from the
# data.
CONTROL = returns_array(doubled(WIDTH), all_of(WIDTH), text="what the map itself returns")


def control(impl: Implementation, cluster: Cluster) -> None:
    """Run the step `control`: the mapped function on this process's rows."""
    cluster.step("control", impl.map(double()), impl.given(cluster.rows(WIDTH)))


def unless_shard_map(pmaps: Expectation, shard_map: Expectation) -> Columns:
    """One thing of both pmaps, another of shard_map."""
    return {LEGACY_PMAP: pmaps, NEW_PMAP: pmaps, SHARD_MAP: shard_map}


def mapped(model: Model, *row: int) -> Columns:
    """An array of a row per device: of this process's from a pmap, of all from a shard_map."""
    return unless_shard_map(returns_array(model, own(*row)), returns_array(model, all_of(*row)))


def sharding_of(mesh: jax.sharding.Mesh, *spec: str | None) -> jax.sharding.NamedSharding:
    """The NamedSharding of a spec on a mesh."""
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def block_map(impl: Implementation, sharding: Any, body: Callable[[Any], Any]) -> Mapped:
    """`body` on every block of an array of this sharding: a jitted shard_map, ranks kept."""
    spec, mesh = sharding.spec, sharding.mesh
    function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    return impl.adopt(function, "jit(shard_map)")


SIZE = 3  # of a row that is viewed


@described("this process's rows")
def rows_here(place: Place) -> Any:
    return place.rows(SIZE)


DOUBLED = doubled(SIZE)
