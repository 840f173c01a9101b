"""flax's unreplicate of an output, which according to the document is a gather."""

from __future__ import annotations

from conformance.sections.indexing import (
    ACCESS,
    Form,
    access,
    accessed,
    first_of_all,
    first_row,
    moves,
    output,
)
from conformance.spec.aspects import RESULT
from conformance.spec.clause import clause, devices
from conformance.spec.codes import Code, Problem
from conformance.spec.comparing import against
from conformance.spec.expectation import OfEachStep, not_applicable, returns
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.protocols import Cluster, Implementation

ALL_GATHER = moves(
    "an all-gather is compiled", lambda m: "all-gather" in m["collectives"], "collectives"
)


def _whose(place: Place, step: Step) -> tuple[bool, str]:
    problem = against(first_of_all, place, step)
    # In the first process both are equal; the other processes decide.
    own = against(first_row, place, step) is None
    if not own:
        return problem is None, problem or str(step)
    own_row = "the process's own first row"
    return problem is None, Problem(f"it is {own_row}", Code.VALUE, mistake=own_row)


WHOSE = OfEachStep("returns the first row of all", _whose, claims=RESULT)


@clause(
    "indexing.unreplicate.flax",
    claim="migrate-pmap.unreplicate-gathers",
    topologies=ONE_AND_FOUR,
    requires=("flax",),
    needs=devices(8),
    expect={
        LEGACY_PMAP: not_applicable("the statement is about arrays of the new jax.pmap"),
        NEW_PMAP: accessed(ALL_GATHER, returns(first_row)),
        SHARD_MAP: accessed(ALL_GATHER, WHOSE),
    },
)
def unreplicate(impl: Implementation, cluster: Cluster) -> None:
    """flax's unreplicate of an output that is sharded by rows all-gathers it."""
    from flax import jax_utils

    form = Form("unreplicate", "", jax_utils.unreplicate)
    access(cluster, ACCESS, form, output(impl, cluster))
