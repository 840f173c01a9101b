"""Collectives over a mesh axis against their NumPy models, and the out_specs that each needs.

Every collective is run three times: with an output per device, with an output that claims to be
replicated, and with the latter under `check_vma=False`. Whether the claim is consistent depends on
the collective alone, and is a column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformance.sections.rewriting import NOT_INFERRED, REPLICATED, words
from conformance.sections.rewriting.collective_models import (
    COLLECTIVES,
    Collective,
    shape_of_block,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import ONE_AND_FOUR
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="migrate-pmap.out-specs-consistent", needs=devices(2), topologies=ONE_AND_FOUR
)


@dataclass(frozen=True, slots=True)
class Output:
    """The declaration of the output, and whether shard_map checks it."""

    out_axes: int | None
    check_vma: bool = True


def each(collective: Collective) -> Expectation:
    """Every device's own result."""
    return twice(returns(collective.stacked, text=f"each device's own result of {collective.key}"))


def one(collective: Collective) -> Expectation:
    """Expect one device's result."""
    text = f"the result of {collective.key} on this process's first device"
    return twice(returns(collective.first, text=text))


def one_of_equals(collective: Collective) -> Expectation:
    """The same, and where all devices have the same, as an array that says so."""
    return every(one(collective), twice(REPLICATED)) if collective.replicated else one(collective)


def one_if_consistent(collective: Collective) -> Expectation:
    """The same, but refused where the devices' results differ."""
    if collective.replicated:
        return one_of_equals(collective)
    return twice(raises(ValueError, NOT_INFERRED, phase="trace", otherwise=collective.first))


def consistency(collective: Collective) -> str:
    """Describe the effect of declaring the collective's result replicated."""
    return (
        "an output declared replicated is accepted"
        if collective.replicated
        else "an output declared replicated is not, and shard_map refuses it"
    )


def fact_of_declaring(collective: Collective) -> str:
    """Return the fact: replicated results are accepted, others refused; all_gather's has
    its own.
    """
    if collective.kind == "all-gather":
        return "rewriting.collectives.replicated-all-gather"
    return f"rewriting.collectives.{'replicated' if collective.replicated else 'inconsistent'}"


@DEFAULTS.family(
    "rewriting.collectives.{collective}.{output}",
    collective=COLLECTIVES,
    output={"stacked": Output(0)},
    claim="migrate-pmap.collectives-over-mesh-axes",
    title=lambda collective: f"{words(collective)}: every device has the model's value.",
    fact=lambda collective: f"rewriting.collectives.{collective.kind}",
    expect=lambda collective: everywhere(each(collective)),
)
@DEFAULTS.family(
    "rewriting.collectives.{collective}.{output}",
    collective=COLLECTIVES,
    output={"replicated": Output(None)},
    title=lambda collective: f"{words(collective)}: {consistency(collective)}.",
    fact=fact_of_declaring,
    cause=lambda collective: "" if collective.replicated else "replicated-output-must-be-inferred",
    expect={LEGACY_PMAP: one, NEW_PMAP: one, SHARD_MAP: one_if_consistent},
)
@DEFAULTS.family(
    "rewriting.collectives.{collective}.{output}",
    collective=COLLECTIVES,
    output={"replicated-unchecked": Output(None, check_vma=False)},
    title=lambda collective: (
        f"{words(collective)}: an output declared replicated under check_vma=False is one "
        "device's, as pmap's."
    ),
    fact="rewriting.collectives.replicated-unchecked",
    expect=lambda collective: of_shard_map(
        one_of_equals(collective), "check_vma is an option of shard_map"
    ),
)
def collect(impl: Implementation, cluster: Cluster, collective: Collective, output: Output) -> None:
    """One collective over the mesh's axis, twice."""
    out_axes = output.out_axes
    function = impl.map(
        lambda x: collective.apply(x), out_axes=out_axes, check_vma=output.check_vma
    )
    rows = impl.given(cluster.rows(*shape_of_block(cluster)))
    if out_axes == 0 or collective.replicated:
        cluster.twice(function, rows)
    else:  # replicas that differ are no array to compare: look at what is shown of them
        cluster.twice(lambda: np.asarray(function(rows)))
