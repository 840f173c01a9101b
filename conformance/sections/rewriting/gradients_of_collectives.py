"""Gradients of every collective: taken in the body, where legacy pmap is the oracle, and outside.

All collectives here are linear, so one NumPy model serves for both directions: the gradient is the
model's transpose, found by applying it to one unit block after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.rewriting import words
from conformance.sections.rewriting.collective_models import (
    COLLECTIVES,
    Collective,
    Rows,
    blocks,
    shape_of_block,
)
from conformance.sections.rewriting.gradients import ANOTHER_NUMBER, CHECKS, Check
from conformance.spec.clause import devices
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.gradient-of-collectives"

# The counts do not depend on the rows, so that there is nothing to differentiate.
LINEAR = {key: one for key, one in COLLECTIVES.items() if not one.counts}


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of what a collective returns, and of costs as weights; `model` is its derivative."""

    key: str
    text: str
    of: Callable[[Any, Any], Any]
    model: Callable[[Rows, Rows], Rows]


LOSSES: Mapping[str, Loss] = table(
    Loss(
        "weighted",
        "a loss whose weights differ between devices",
        lambda out, cost: (out * cost).sum(),
        lambda out, cost: cost,
    ),
    Loss(
        "squared",
        "a loss that depends on the collective alone",
        lambda out, cost: (0.5 * out**2).sum(),
        lambda out, cost: out,
    ),
)


def costs(place: Place, collective: Collective) -> Rows:
    """One weight per element that the collective returns, different on every device."""
    return place.all_rows(*collective.model(blocks(place)).shape[1:])


def transposed(model: Callable[[Rows], Rows], cotangent: Rows, like: Rows) -> Rows:
    """Return what each input element adds to `cotangent` times the model's output."""
    gradient = np.zeros(like.size)
    for at in range(like.size):
        unit = np.zeros(like.size)
        unit[at] = 1
        gradient[at] = (model(unit.reshape(like.shape)) * cotangent).sum()
    return gradient.reshape(like.shape).astype(np.float32)


SHARED_ONCE = "the model's gradient over the number of devices"


def pays_back(collective: Collective, loss: Loss) -> Expectation:
    """The gradient of all devices' losses together with respect to this process's blocks."""
    if not collective.differentiable:
        rule = f"^Differentiation rule for '{collective.key}' not implemented$"
        return twice(raises(NotImplementedError, rule, phase="trace"))

    def model(place: Place) -> Any:
        stack = blocks(place)
        cotangent = loss.model(collective.model(stack), costs(place, collective))
        return place.mine(transposed(collective.model, cotangent, stack))

    def shared_once(place: Place) -> Any:
        return model(place) / np.float32(place.topology.devices)

    return twice(returns(model, mistakes={SHARED_ONCE: shared_once}))


def fact_of(collective: Collective, check: Check) -> str:
    """One of the collective's kind, however its loss is taken."""
    return check.fact("rewriting.gradients.of-collectives", collective.kind)


@family(
    "rewriting.gradients.through-{collective}.{loss}.inside{check}",
    collective=LINEAR,
    loss=LOSSES,
    check=CHECKS,
    claim=lambda check: check.claim(CLAIM),
    title=lambda collective, loss, check: (
        f"The gradient of {words(collective)}, taken in the mapped body, of {loss.text}{check.said}"
    ),
    fact=fact_of,
    needs=devices(2),
    topologies=lambda loss, check: (
        ONE_AND_FOUR if loss.key == "squared" and check.vma else ONE_PROCESS
    ),
    left_out=lambda loss, check: (
        ""
        if loss.key == "squared" and check.vma
        else "the tests with a squared loss cover several processes"
    ),
    expect=lambda collective, loss, check: check.columns(pays_back(collective, loss)),
)
def in_the_body(
    impl: Implementation, cluster: Cluster, collective: Collective, loss: Loss, check: Check
) -> None:
    """The gradient of a loss of what the collective returns, taken in the body."""
    rows = impl.given(cluster.rows(*shape_of_block(cluster)))
    cost = impl.given(cluster.mine(costs(cluster, collective)))
    body = jax.grad(lambda x, c: loss.of(collective.apply(x), c))
    cluster.twice(impl.map(body, check_vma=check.vma), rows, cost)


@family(
    "rewriting.gradients.through-{collective}.{loss}.outside{check}",
    collective=LINEAR,
    loss={"squared": LOSSES["squared"]},  # the other shows nothing here that it would not
    check=CHECKS,
    claim=lambda check: check.claim(CLAIM),
    title=lambda collective, loss, check: (
        f"The gradient of {words(collective)}, taken outside the mapped function, of "
        f"{loss.text}{check.said}"
    ),
    fact=fact_of,
    needs=devices(2),
    left_out=ANOTHER_NUMBER,
    expect=lambda collective, loss, check: check.columns(pays_back(collective, loss)),
)
def through_the_map(
    impl: Implementation, cluster: Cluster, collective: Collective, loss: Loss, check: Check
) -> None:
    """Take the gradient of a loss of the collective's result, through the mapped function."""
    rows = impl.given(cluster.rows(*shape_of_block(cluster)))
    cost = impl.given(cluster.mine(costs(cluster, collective)))
    mapped = impl.map(lambda x, c: loss.of(collective.apply(x), c), check_vma=check.vma)
    cluster.twice(jax.grad(lambda x, c: mapped(x, c).sum()), rows, cost)
