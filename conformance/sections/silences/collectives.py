"""Collectives of every kind against their NumPy models, and those that legacy refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.sections.silences.collective_forms import (
    COUNT,
    FORMS,
    OF_WHOLE,
    TILED,
    WHOLE,
    Form,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax

LEFT_OUT = "rewriting.collectives tests several processes"


@family(
    "silences.collective.{form}.{check}",
    form=FORMS,
    check=CHECKS,
    claim="{form.claim}",
    title="{form.text}{check.text}.",
    fact="silences.collective.{form}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda form, check: asked(
        everywhere(twice(returns(form.expected(), text=f"what NumPy gives for {form.text}"))), check
    ),
)
def collect(impl: Implementation, cluster: Cluster, form: Form, check: Check) -> None:
    """A collective of rows."""
    rows = impl.given(cluster.rows(*form.shape))
    if form.whole:
        function = impl.map(lambda x, y: form.apply(x, y), in_axes=(0, None), check_vma=check.on)
        cluster.twice(function, rows, OF_WHOLE)
    else:
        cluster.twice(impl.map(lambda x: form.apply(x), check_vma=check.on), rows)


# --- Refused by legacy pmap -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """A collective that cannot be, of a block of three numbers: legacy's error."""

    key: str
    text: str
    apply: Callable[[Any], Any]
    error: type[Exception]
    pattern: str
    claim: str = WHOLE
    phase: str = "trace"


REFUSALS: Mapping[str, Refusal] = table(
    Refusal(
        "other-axis",
        "`psum` over an axis that does not exist",
        lambda x: lax.psum(x, "j"),
        NameError,
        r"^(?i:found an unbound axis name|unbound axis name): j\b",
    ),
    Refusal(
        "psum-scatter-size",
        "`psum_scatter` of three numbers over eight devices",
        lambda x: lax.psum_scatter(x, "i"),
        ValueError,
        "scatter dimension size 3 must match shard count 8",
    ),
    Refusal(
        "all-to-all-size",
        "`all_to_all` of three numbers over eight devices",
        lambda x: lax.all_to_all(x, "i", 0, 0),
        ValueError,
        "^all_to_all requires the size of the mapped axis axis_name to equal .* are 8 and 3",
    ),
    Refusal(
        "ppermute-to-one",
        "`ppermute` from two devices to one",
        lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]),
        ValueError,
        r"^ppermute sources and destinations must be unique, got \(\(0, 1\), \(2, 1\)\)",
        phase="lower",
    ),
    Refusal(
        "psum-scatter-tiled-size",
        "`psum_scatter`, tiled, of three numbers over eight devices",
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        ValueError,
        "scatter dimension size 3 must be divisible by shard_count 8",
        TILED,
    ),
    Refusal(
        "all-to-all-tiled-size",
        "`all_to_all`, tiled, of three numbers over eight devices",
        lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        ValueError,
        r"^The size of all_to_all split_axis \(3\) has to be divisible by .* axis i \(8\)",
        TILED,
    ),
)


@family(
    "silences.collective-refused.{refusal}.{check}",
    refusal=REFUSALS,
    check=CHECKS,
    claim="{refusal.claim}",
    title="{refusal.text}{check.text} is refused by an error that names the axis or the sizes.",
    fact="silences.collective-refused.{refusal}",
    needs=devices(COUNT),
    left_out="the result does not depend on the number of processes",
    expect=lambda refusal, check: asked(
        everywhere(twice(raises(refusal.error, refusal.pattern, phase=refusal.phase))), check
    ),
)
def refuse(impl: Implementation, cluster: Cluster, refusal: Refusal, check: Check) -> None:
    """A collective that cannot be."""
    function = impl.map(lambda x: refusal.apply(x), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(3)))
