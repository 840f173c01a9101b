"""The devices to which an output is committed, and those of eager results computed from it.

The documents are silent. Under legacy pmap an output is committed to the mapped function's devices,
but an eager result of it is on one device and not committed, as is a row of it.
"""

from __future__ import annotations

from typing import Any

from conformance.sections.indexing import (
    ACCESS,
    ONE_DEVICE,
    ROW,
    accessed,
    first_of_all,
    first_row,
    output,
    over_the_map,
)
from conformance.spec.aspects import COMMITTED as BOUND
from conformance.spec.aspects import SHARDING_TYPE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.combining import of_result
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, every, in_steps, returns, sharded
from conformance.spec.expected import Expectation
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(claim="pmap-silence.committed-outputs", topologies=ONE_AND_FOUR)


def committed_is(wanted: bool, text: str) -> OfEachStep:
    """Expect every array of a step to be committed, or not."""

    def check_step(_: Place, step: Step) -> tuple[bool, str]:
        seen = [leaf.committed for leaf in step.leaves]
        return bool(seen) and all(one is wanted for one in seen), f"committed: {seen}"

    return of_result(text, check_step, claims={BOUND})


COMMITTED = committed_is(True, "committed to its devices, as legacy's")
UNCOMMITTED = committed_is(False, "committed to no device, as legacy's")


@described("this process's rows, doubled")
def rows(place: Place) -> Any:
    return place.rows(*ROW) * 2


@described("this process's rows, doubled, and one")
def rows_and_one(place: Place) -> Any:
    return place.rows(*ROW) * 2 + 1


def stays(implementation: str) -> Expectation:
    """Expect the rows, committed to the devices of the mapped function."""
    there = sharded(
        "over all mapped devices",
        lambda place, s: over_the_map(place, implementation, s),
        claims=frozenset({SHARDING_TYPE}),
    )
    return in_steps(every(returns(rows), COMMITTED, there), "output")


# Legacy brings what it computes eagerly with to its first device, by way of the host.
AS_LEGACY = in_steps(every(returns(rows_and_one), UNCOMMITTED, ONE_DEVICE), "later")


@DEFAULTS.clause(
    "indexing.committed.output", expect={name: stays(name) for name in IMPLEMENTATIONS}
)
def committed_output(impl: Implementation, cluster: Cluster) -> None:
    """An output is committed to the mapped function's devices."""
    cluster.step("output", lambda: output(impl, cluster))


@DEFAULTS.clause("indexing.committed.later", needs=devices(8), expect=everywhere(AS_LEGACY))
def later(impl: Implementation, cluster: Cluster) -> None:
    """`x + 1` of an output is on one device and not committed, as under legacy pmap."""
    x = output(impl, cluster)
    cluster.step("later", lambda: x + 1)


@DEFAULTS.clause(
    "indexing.committed.zero",
    needs=devices(8),
    expect={
        LEGACY_PMAP: accessed(UNCOMMITTED, returns(first_row)),
        NEW_PMAP: accessed(UNCOMMITTED, returns(first_row)),
        SHARD_MAP: accessed(UNCOMMITTED, returns(first_of_all)),
    },
)
def committed(impl: Implementation, cluster: Cluster) -> None:
    """`x[0]` is not committed to a device, so it can be combined with arrays on any device."""
    x = output(impl, cluster)
    cluster.step(ACCESS, lambda: x[0])
