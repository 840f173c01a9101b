"""Gradients of an output, taken outside the mapped function, compared with calculus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.sections.rewriting import words
from conformance.sections.rewriting.gradients import (
    CHECKS,
    PASSINGS,
    WEIGHTS,
    Check,
    Passing,
    gradients,
    loss,
)
from conformance.spec.clause import devices, processes
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import in_steps, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

# Legacy pmap refuses these; a gradient that is computed after all must be right.
LEGACY_REFUSES = raises(
    NotImplementedError, r"^autodiff of pmap functions with out_axes=None is not supported\."
)
IN_SEVERAL = "rewriting.gradients.several-processes.* tests several processes"
CALLS = ("first call", "second call", "under jit")


@dataclass(frozen=True, slots=True)
class MappedLoss:
    """The body's result; `shares` is, per device (row), the share of each device's own loss
    (column).
    """

    key: str
    of: Callable[[Any, Any], Any]
    shares: Callable[[int], NDArray[Any]]


BODIES: Mapping[str, MappedLoss] = table(
    MappedLoss("own", loss, np.eye),
    MappedLoss(
        "pmean",
        lambda w, x: jax.lax.pmean(loss(w, x), "i"),
        lambda count: np.full((count, count), 1 / count),
    ),
    MappedLoss(
        "psum",
        lambda w, x: jax.lax.psum(loss(w, x), "i"),
        lambda count: np.ones((count, count)),
    ),
)


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of the output to one number; `model` applies it to the devices' shares."""

    key: str
    out_axes: int | None
    of: Callable[[Any], Any]
    model: Callable[[NDArray[Any]], NDArray[Any]]


REDUCTIONS: Mapping[str, Reduction] = table(
    Reduction("added-up", 0, lambda out: out.sum(), lambda shares: shares.sum(0)),
    Reduction("first", 0, lambda out: out[0], lambda shares: shares[0]),
    Reduction("replicated", None, lambda out: out, lambda shares: shares[0]),
)


@dataclass(frozen=True, slots=True)
class Respect:
    """The variable of the gradient: `argument` 0 are the parameters, 1 the rows."""

    key: str
    text: str
    passed: Passing
    argument: int = 0


RESPECTS: Mapping[str, Respect] = table(
    Respect("unmapped", "unmapped parameters", PASSINGS["unmapped"]),
    Respect("stacked", "stacked and mapped parameters", PASSINGS["stacked"]),
    Respect("closed-over", "parameters that are closed over", PASSINGS["closed-over"]),
    Respect("rows", "the mapped rows", PASSINGS["unmapped"], argument=1),
)

# Without the check the two that differ most in how they are transposed are enough.
WITHOUT_CHECK = ("unmapped", "rows")


def asked(body: MappedLoss, reduced: Reduction, respect: Respect, check: Check) -> bool:
    """Every choice, but that each device's own loss is no replicated value."""
    if body.key == "own" and reduced.out_axes is None:
        return False
    return check.vma or respect.key in WITHOUT_CHECK


def calculus(body: MappedLoss, reduced: Reduction, respect: Respect, *, pmap: bool) -> Model:
    """Return the model of the gradient of the reduced outputs, by calculus.

    In several processes pmap's output is a process's own rows: each process reduces these to its
    own number, so the gradient is that of all these numbers together with respect to what this
    process passed. shard_map's output and arguments are global arrays.
    """

    @described("the gradient of the reduced losses")
    def model(place: Place) -> Any:
        shares = body.shares(place.topology.devices)
        parts = np.split(shares, place.topology.processes) if pmap else [shares]
        counts = np.sum([reduced.model(part) for part in parts], axis=0)[:, None]
        rows = place.all_rows(3)
        if respect.argument == 1:
            return place.mine(((rows @ WEIGHTS)[:, None] * WEIGHTS * counts).astype(np.float32))
        each = gradients(place) * counts
        if respect.passed.axis is not None:
            return place.mine(each).astype(np.float32)
        return (place.mine(each) if pmap else each).sum(0).astype(np.float32)

    return model


def columns(body: MappedLoss, reduced: Reduction, respect: Respect, check: Check) -> Columns:
    """Calculus, but where legacy refuses."""

    def expected(*, pmap: bool) -> Expectation:
        return in_steps(returns(calculus(body, reduced, respect, pmap=pmap)), *CALLS)

    if not check.vma:
        return check.columns(expected(pmap=False))
    refuses = reduced.out_axes is None
    return {
        LEGACY_PMAP: in_steps(LEGACY_REFUSES, *CALLS) if refuses else expected(pmap=True),
        NEW_PMAP: expected(pmap=True),
        SHARD_MAP: expected(pmap=False),
    }


@family(
    "rewriting.gradients.outside.{body}-{reduced}.{respect}{check}",
    body=BODIES,
    reduced=REDUCTIONS,
    respect=RESPECTS,
    check=CHECKS,
    only=asked,
    claim=lambda check: check.claim("pmap-silence.gradient-outside-the-map"),
    title=lambda body, reduced, respect, check: (
        f"Gradient outside the mapped function: {body.key} loss, {words(reduced)}, "
        f"with respect to {respect.text}{check.said}"
    ),
    fact=lambda reduced, check: check.fact("rewriting.gradients.outside", reduced.key),
    needs=devices(2),
    left_out=IN_SEVERAL,
    expect=columns,
)
def through_the_map(
    impl: Implementation,
    cluster: Cluster,
    body: MappedLoss,
    reduced: Reduction,
    respect: Respect,
    check: Check,
) -> None:
    """Take a gradient of the output, outside the mapped function: directly, and under jit."""
    rows, weights = impl.given(cluster.rows(3)), respect.passed.weights(impl, cluster)
    gradient = gradient_of(impl, body, reduced, respect, check)
    cluster.twice(gradient, weights, rows)
    cluster.step("under jit", jax.jit(gradient), weights, rows)


def gradient_of(
    impl: Implementation, body: MappedLoss, reduced: Reduction, respect: Respect, check: Check
) -> Any:
    """Return the gradient of the reduced output, as a function of the weights and the rows."""
    passed, options = respect.passed, {"out_axes": reduced.out_axes, "check_vma": check.vma}  # type: Passing, dict[str, Any]
    mapped = impl.map(lambda w, x: body.of(w, x), in_axes=(passed.axis, 0), **options)

    def number(weights: Any, rows: Any) -> Any:
        if not passed.closed:
            return reduced.of(mapped(weights, rows))
        return reduced.of(impl.map(lambda x: body.of(weights, x), **options)(rows))

    return jax.grad(number, argnums=respect.argument)


OF_THIS_PROCESS = "the gradient of a map over this process's devices alone"


@dataclass(frozen=True, slots=True)
class Number:
    """How each process makes one number of its output."""

    key: str
    text: str
    reduced: Reduction


NUMBERS: Mapping[str, Number] = table(
    Number("", "added up", REDUCTIONS["added-up"]),
    Number("-first", "of the first row", REDUCTIONS["first"]),
)


def alone(body: MappedLoss, number: Number, respect: Respect) -> Model:
    """The same, were this process's devices all that there are."""

    def model(place: Place) -> Any:
        count = place.topology.devices_per_process
        counts = number.reduced.model(body.shares(count))[:, None]
        rows = place.rows(3)
        if respect.argument == 1:
            return ((rows @ WEIGHTS)[:, None] * WEIGHTS * counts).astype(np.float32)
        each = place.mine(gradients(place)) * counts
        return (each.sum(0) if respect.passed.axis is None else each).astype(np.float32)

    return model


def columns_in_several(body: MappedLoss, number: Number, respect: Respect) -> Columns:
    """Expect the gradient of the processes' numbers by calculus, without jit; legacy pmap cannot
    run it in several processes.
    """

    def expected(*, pmap: bool) -> Expectation:
        mistakes = {OF_THIS_PROCESS: alone(body, number, respect)}
        model = calculus(body, number.reduced, respect, pmap=pmap)
        return twice(returns(model, mistakes=mistakes))

    by_pmap = expected(pmap=True)
    return {LEGACY_PMAP: by_pmap, NEW_PMAP: by_pmap, SHARD_MAP: expected(pmap=False)}


@family(
    "rewriting.gradients.several-processes.{body}{number}.{respect}",
    body=BODIES,
    number=NUMBERS,
    respect=RESPECTS,
    claim="pmap-silence.gradient-outside-the-map",
    title=lambda body, number, respect: (
        f"In several processes, gradient outside the mapped function: {body.key} loss, "
        f"{number.text}, with respect to {respect.text}."
    ),
    fact=lambda number: f"rewriting.gradients.several-processes{number.key}",
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    expect=columns_in_several,
)
def through_the_map_of_several(
    impl: Implementation, cluster: Cluster, body: MappedLoss, number: Number, respect: Respect
) -> None:
    """Take a gradient of a number of each process's output, in several processes."""
    rows, weights = impl.given(cluster.rows(3)), respect.passed.weights(impl, cluster)
    gradient = gradient_of(impl, body, number.reduced, respect, CHECKS[""])
    cluster.twice(gradient, weights, rows)
