"""Gradients of every collective: taken in the body, where legacy pmap is the oracle, and outside.

All collectives here are linear, so one NumPy model serves for both directions: the gradient is the
model's transpose, found by applying it to one unit block after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, not_applicable, raises, returns
from conformance.sections.rewriting.collectives import BY_NAME, COLLECTIVES, Rows, blocks

NO_OPTION = not_applicable("check_vma is an option of shard_map")


def costs(place: Place, name: str) -> Rows:
    """One weight per element that the collective returns, different on every device."""
    return place.all_rows(*BY_NAME[name].model(blocks(place)).shape[1:])


def transposed(model: Callable[[Rows], Rows], cotangent: Rows, like: Rows) -> Rows:
    """What every element of the input adds to `cotangent` times the model's output."""
    gradient = np.zeros(like.size)
    for at in range(like.size):
        unit = np.zeros(like.size)
        unit[at] = 1
        gradient[at] = (model(unit.reshape(like.shape)) * cotangent).sum()
    return gradient.reshape(like.shape).astype(np.float32)


def gradient_model(name: str, loss: str) -> Callable[[Place], Any]:
    """The gradient of all devices' losses together with respect to this process's blocks."""

    def model(place: Place) -> Any:
        forward, given = BY_NAME[name].model, blocks(place)
        cotangent = costs(place, name) if loss == "weighted" else forward(given)
        return place.mine(transposed(forward, cotangent, given))

    return model


COUNTS = ("axis-index", "axis-size", "psum-of-one")

WIDER = ("squared", "inside", True)  # what is run in several processes too

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "weighted": lambda out, cost: (out * cost).sum(),
    "squared": lambda out, cost: (0.5 * out**2).sum(),
}
SAID = {
    "weighted": "a loss whose weights differ between devices",
    "squared": "a loss that depends on the collective alone",
}
WHERE = {"inside": "taken in the body", "outside": "taken through the map"}


def gradient(impl: Any, cluster: Any, name: str, loss: str, where: str, check_vma: bool) -> None:
    """The gradient of a loss of what the collective returns, with respect to its input."""
    apply, of = BY_NAME[name].apply, LOSSES[loss]
    given = impl.given(cluster.rows(cluster.topology.devices, 2))
    cost = impl.given(cluster.mine(costs(cluster, name)))
    if where == "inside":
        body = jax.grad(lambda x, c: of(apply(x), c))
        cluster.twice(impl.map(body, check_vma=check_vma), given, cost)
        return
    mapped = impl.map(lambda x, c: of(apply(x), c), check_vma=check_vma)
    cluster.twice(jax.grad(lambda x, c: mapped(x, c).sum()), given, cost)


for _one in COLLECTIVES:
    for _loss in LOSSES:
        for _where in WHERE:
            for _check in (True, False):
                if _one.name in COUNTS or (_where == "outside" and _loss == "weighted"):
                    continue  # nothing to differentiate, or nothing that "squared" would not show
                _same: Expectation = returns(gradient_model(_one.name, _loss))
                if not _one.differentiable:
                    _same = raises(NotImplementedError, "Differentiation rule for '")
                clause(
                    f"rewriting.gradients.through-{_one.name}.{_loss}.{_where}"
                    + ("" if _check else ".unchecked"),
                    claim="pmap-silence.gradient-of-collectives"
                    if _check
                    else "pmap-silence.gradient-check-vma",
                    needs=devices(2),
                    topologies=ONE_AND_FOUR if (_loss, _where, _check) == WIDER else ONE_PROCESS,
                    parameters={
                        "name": _one.name,
                        "loss": _loss,
                        "where": _where,
                        "check_vma": _check,
                    },
                    title=f"The gradient of {_one.name.replace('-', ' ')}, {WHERE[_where]}, of "
                    + SAID[_loss]
                    + ("." if _check else ", under check_vma=False."),
                    expect={
                        LEGACY_PMAP: _same if _check else NO_OPTION,
                        NEW_PMAP: _same if _check else NO_OPTION,
                        SHARD_MAP: _same,
                    },
                )(gradient)
