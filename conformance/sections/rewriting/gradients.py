"""Gradients of a loss: taken in the body, the data-parallel step, and taken through the map.

The documents say nothing about gradients, so legacy pmap is the oracle. Its rule, which the models
below spell out, is that a gradient taken in the body is that of all devices' losses together with
respect to this device's own parameters: what a device passes to a collective is paid back by all.
A sum or a factor too many is the kind of difference that no error ever shows, so the models of the
likely mistakes have names, and a cell that holds one of them says which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, Model, not_applicable, raises, returns

TOPOLOGIES = ("1x8", "2x2", "4x2")

WEIGHTS = np.array([1, 2, 3], np.float32)
RATE = np.float32(2**-6)
STEPS = 3

NO_OPTION = not_applicable("check_vma is an option of shard_map")
NO_CAST = not_applicable("pmap does not tell varying values from others")


def not_asked(passed: str, check_vma: bool) -> Expectation | None:
    """Why the clause is not about pmap, or None."""
    return NO_CAST if passed == "cast" else None if check_vma else NO_OPTION


def loss(weights: Any, row: Any) -> Any:
    """Half of the squared prediction: its gradient depends on the row and on the weights."""
    return 0.5 * jax.numpy.dot(row, weights) ** 2


def gradients(place: Place) -> NDArray[Any]:
    """The gradient of each device's own loss, one row per device of the cluster."""
    rows = place.all_rows(3)
    own: NDArray[Any] = (rows @ WEIGHTS)[:, None] * rows
    return own


# What a device may hold, as a function of all devices' own gradients and their number.
HELD: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "the device's own gradient": lambda g: g,
    "the mean over all devices": lambda g: np.broadcast_to(g.mean(0), g.shape),
    "the sum over all devices": lambda g: np.broadcast_to(g.sum(0), g.shape),
    "the device's own gradient times the number of devices": lambda g: g * len(g),
    "the device's own gradient over the number of devices": lambda g: g / len(g),
    "the sum over all devices times their number": lambda g: np.broadcast_to(
        g.sum(0) * len(g), g.shape
    ),
}
OWN, MEAN, SUM, OWN_TIMES = list(HELD)[:4]


def held(name: str, *, one: bool = False) -> Expectation:
    """Each device holds the named one of `HELD` (or, for `one`, all the same single one)."""

    def model(of: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Place], Any]:
        def values(place: Place) -> Any:
            rows = place.mine(of(gradients(place))).astype(np.float32)
            return rows[0] if one else rows

        return values

    mistakes = {other: model(of) for other, of in HELD.items() if other != name}
    return returns(model(HELD[name]), text=name, mistakes=mistakes)


# --- In the body


def own(weights: Any, row: Any) -> Any:
    """No collective at all."""
    return jax.grad(loss)(weights, row)


def pmean_of_gradient(weights: Any, row: Any) -> Any:
    """The data-parallel step."""
    return jax.lax.pmean(jax.grad(loss)(weights, row), "i")


def psum_of_gradient(weights: Any, row: Any) -> Any:
    """The same, summed."""
    return jax.lax.psum(jax.grad(loss)(weights, row), "i")


def gradient_of_pmean(weights: Any, row: Any) -> Any:
    """The loss is averaged first."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, row), "i"))(weights)


def gradient_of_psum(weights: Any, row: Any) -> Any:
    """The loss is summed first."""
    return jax.grad(lambda w: jax.lax.psum(loss(w, row), "i"))(weights)


def pmean_of_gradient_of_pmean(weights: Any, row: Any) -> Any:
    """Both are averaged, which in legacy comes to the same as averaging once."""
    return jax.lax.pmean(gradient_of_pmean(weights, row), "i")


INSIDE: dict[str, tuple[Callable[..., Any], str]] = {
    "own": (own, OWN),
    "pmean-of-gradient": (pmean_of_gradient, MEAN),
    "psum-of-gradient": (psum_of_gradient, SUM),
    "gradient-of-pmean": (gradient_of_pmean, OWN),
    "gradient-of-psum": (gradient_of_psum, OWN_TIMES),
    "pmean-of-gradient-of-pmean": (pmean_of_gradient_of_pmean, MEAN),
}


def varying(weights: Any) -> Any:
    """The cast after which shard_map treats a whole parameter as each device's own."""
    lax: Any = jax.lax  # pvary is what pcast was at first
    return (
        lax.pcast(weights, "i", to="varying") if hasattr(lax, "pcast") else lax.pvary(weights, "i")
    )


PASSED = {
    "unmapped": "passed whole",
    "stacked": "stacked and mapped",
    "closed-over": "closed over",
    "cast": "passed whole and cast to varying in the body",
}


def inside(impl: Any, cluster: Any, what: str, passed: str, check_vma: bool) -> None:
    """A gradient taken in the body, one result per device."""
    body = INSIDE[what][0]
    rows = impl.given(cluster.rows(3))
    if passed == "closed-over":
        cluster.twice(impl.map(lambda x: body(WEIGHTS, x), check_vma=check_vma), rows)
        return
    if passed in ("unmapped", "cast"):

        def cast(weights: Any, row: Any) -> Any:
            return body(varying(weights) if passed == "cast" else weights, row)

        cluster.twice(impl.map(cast, in_axes=(None, 0), check_vma=check_vma), WEIGHTS, rows)
        return
    stacked = np.broadcast_to(WEIGHTS, (cluster.topology.devices_per_process, 3))
    cluster.twice(impl.map(body, check_vma=check_vma), impl.given(stacked), rows)


for _what, (_, _held) in INSIDE.items():
    for _passed, _how in PASSED.items():
        for _check in (True, False):
            if _passed == "cast" and not (_check and _what in ("own", "pmean-of-gradient")):
                continue  # the remedy for what the check does to these
            _same, _pmap = held(_held), not_asked(_passed, _check)
            clause(
                f"rewriting.gradients.{_what}.{_passed}" + ("" if _check else ".unchecked"),
                claim="pmap-silence.gradient-inside-the-map"
                if _check
                else "pmap-silence.gradient-check-vma",
                needs=devices(2),
                topologies=TOPOLOGIES if _what == "pmean-of-gradient" else ONE_AND_FOUR,
                parameters={"what": _what, "passed": _passed, "check_vma": _check},
                title=f"In the body, {_what.replace('-', ' ')}, the parameters {_how}"
                + ("." if _check else ", under check_vma=False."),
                expect={
                    LEGACY_PMAP: _pmap or _same,
                    NEW_PMAP: _pmap or _same,
                    SHARD_MAP: _same,
                },
            )(inside)


# --- The training step


def trained(place: Place, factor: float = 1) -> Any:
    """the weights after the steps, from the gradient of the mean loss over all devices"""
    weights, rows = WEIGHTS, place.all_rows(3) / np.float32(8)
    for _ in range(STEPS):
        step = ((rows @ weights)[:, None] * rows).mean(0)
        weights = (weights - RATE * np.float32(factor) * step).astype(np.float32)
    return weights


def trained_with_sum(place: Place) -> Any:
    """the weights after steps that many times too long"""
    return trained(place, place.topology.devices)


def training(impl: Any, cluster: Any, passed: str, check_vma: bool) -> None:
    """Gradient descent whose every step averages the devices' gradients by a pmean."""
    axis = 0 if passed == "stacked" else None

    def step(weights: Any, row: Any) -> Any:
        given = varying(weights) if passed == "cast" else weights
        return weights - RATE * pmean_of_gradient(given, row)

    function = impl.map(step, in_axes=(axis, 0), out_axes=axis, check_vma=check_vma)
    rows = impl.given(cluster.rows(3) / np.float32(8))
    weights: Any = WEIGHTS
    if axis == 0:
        count = cluster.topology.devices_per_process
        weights = impl.given(np.broadcast_to(WEIGHTS, (count, 3)))

    def run() -> Any:
        state = weights
        for _ in range(STEPS):
            state = jax.block_until_ready(function(state, rows))
        return state

    cluster.twice(run)


def _on_every_device(model: Callable[[Place], Any]) -> Callable[[Place], Any]:
    return lambda place: np.broadcast_to(model(place), (place.topology.devices_per_process, 3))


for _passed in ("unmapped", "stacked", "cast"):
    for _check in (True, False) if _passed != "cast" else (True,):
        _pmap = not_asked(_passed, _check)
        _right: Model = trained
        _wrong: Model = trained_with_sum
        if _passed == "stacked":
            _right, _wrong = _on_every_device(trained), _on_every_device(trained_with_sum)
        _same = returns(
            _right,
            text=trained.__doc__ or "",
            mistakes={"trained with the sum of the gradients in place of their mean": _wrong},
        )
        clause(
            f"rewriting.gradients.training-step.{_passed}" + ("" if _check else ".unchecked"),
            claim="pmap-silence.gradient-inside-the-map"
            if _check
            else "pmap-silence.gradient-check-vma",
            needs=devices(2),
            topologies=TOPOLOGIES,
            parameters={"passed": _passed, "check_vma": _check},
            title=f"Three data-parallel training steps, the parameters {PASSED[_passed]}"
            + ("." if _check else ", under check_vma=False."),
            expect={
                LEGACY_PMAP: _pmap or _same,
                NEW_PMAP: _pmap or _same,
                SHARD_MAP: _same,
            },
        )(training)


# --- Through the map

BODIES: dict[str, Callable[..., Any]] = {
    "own": loss,
    "pmean": lambda w, x: jax.lax.pmean(loss(w, x), "i"),
    "psum": lambda w, x: jax.lax.psum(loss(w, x), "i"),
}
REDUCED: dict[str, tuple[int | None, Callable[[Any], Any]]] = {
    "added-up": (0, lambda out: out.sum()),
    "first": (0, lambda out: out[0]),
    "replicated": (None, lambda out: out),
}
OUTSIDE_PASSED = {
    "unmapped": "parameters passed whole",
    "stacked": "parameters stacked and mapped",
    "closed-over": "parameters closed over",
    "rows": "the mapped rows",
}
# Legacy refuses these; what can be taken through the map after all must at least be right.
LEGACY_REFUSES = raises(NotImplementedError, "autodiff of pmap functions with out_axes=None")


def weight_of(place: Place, body: str, reduced: str) -> NDArray[Any]:
    """By how much each device's own loss counts in what is differentiated."""
    count = place.topology.devices
    counts: NDArray[Any] = np.eye(count) if body == "own" else np.ones((count, count))
    if body == "pmean":
        counts = counts / count
    weight: NDArray[Any] = counts.sum(0) if reduced == "added-up" else counts[0]
    return weight


def outside_model(body: str, reduced: str, passed: str) -> Callable[[Place], Any]:
    """The gradient, as calculus has it, of the reduced outputs of the map."""

    def model(place: Place) -> Any:
        """the gradient of the reduced losses"""
        counts, rows = weight_of(place, body, reduced)[:, None], place.all_rows(3)
        if passed == "rows":
            each = (rows @ WEIGHTS)[:, None] * WEIGHTS * counts
        else:
            each = gradients(place) * counts
        return (each if passed in ("rows", "stacked") else each.sum(0)).astype(np.float32)

    return model


def outside(impl: Any, cluster: Any, body: str, reduced: str, passed: str, check_vma: bool) -> None:
    """A gradient taken of the map's output, outside of it: as is, and under jit."""
    function, (out_axes, reduce) = BODIES[body], REDUCED[reduced]
    rows = impl.given(cluster.rows(3))
    stacked = passed == "stacked"

    axes = (0 if stacked else None, 0)
    mapped = impl.map(function, in_axes=axes, out_axes=out_axes, check_vma=check_vma)

    def total(weights: Any, rows: Any) -> Any:
        if passed != "closed-over":
            return reduce(mapped(weights, rows))
        closed = impl.map(lambda x: function(weights, x), out_axes=out_axes, check_vma=check_vma)
        return reduce(closed(rows))

    gradient = jax.grad(total, argnums=1 if passed == "rows" else 0)
    count = cluster.topology.devices_per_process
    weights = impl.given(np.broadcast_to(WEIGHTS, (count, 3))) if stacked else WEIGHTS
    cluster.twice(gradient, weights, rows)
    cluster.step("under jit", jax.jit(gradient), weights, rows)


for _body in BODIES:
    for _reduced in REDUCED:
        if (_body, _reduced) == ("own", "replicated"):
            continue  # no replicated value
        for _passed in OUTSIDE_PASSED:
            # Without the check the two that differ most in how they are transposed are enough.
            for _check in (True, False) if _passed in ("unmapped", "rows") else (True,):
                _same = returns(outside_model(_body, _reduced, _passed))
                clause(
                    f"rewriting.gradients.outside.{_body}-{_reduced}.{_passed}"
                    + ("" if _check else ".unchecked"),
                    claim="pmap-silence.gradient-outside-the-map"
                    if _check
                    else "pmap-silence.gradient-check-vma",
                    needs=devices(2),
                    topologies=ONE_PROCESS,
                    parameters={
                        "body": _body,
                        "reduced": _reduced,
                        "passed": _passed,
                        "check_vma": _check,
                    },
                    title=f"Through the map, {_body} loss, {_reduced.replace('-', ' ')}, "
                    f"with respect to {OUTSIDE_PASSED[_passed]}"
                    + ("." if _check else ", under check_vma=False."),
                    expect={
                        LEGACY_PMAP: not_asked("", _check)
                        or (LEGACY_REFUSES if _reduced == "replicated" else _same),
                        NEW_PMAP: not_asked("", _check) or _same,
                        SHARD_MAP: _same,
                    },
                )(outside)
