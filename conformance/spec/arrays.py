"""Expectations of a step's values and of their placement: jax.Arrays, or the host."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.spec.aspects import COMPARED, WEAK_TYPE
from conformance.spec.codes import Code, Problem
from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, returns
from conformance.spec.expected import Expectation
from conformance.spec.observation import Step
from conformance.spec.topology import Place


def returns_array(
    model: Model,
    shape: Callable[[Place], tuple[int, ...]] | None = None,
    *,
    text: str = "",
    mistakes: Mapping[str, Model] | None = None,
) -> OfEachStep:
    """Expect what `returns` does, of jax.Arrays only, each with this global shape (else the
    model's).
    """
    values = returns(model, text=text, mistakes=mistakes)

    def problem(place: Place, step: Step) -> str | None:
        for leaf in step.leaves:
            wanted = None if shape is None else shape(place)
            if leaf.sharding is None:
                return f"no jax.Array but {leaf.type}: {step}"
            if wanted is not None and leaf.shape != wanted:
                return f"an array of shape {list(leaf.shape)} in place of {list(wanted)}: {step}"
        return None

    return _also(values, "a jax.Array", problem)


def returns_host(
    model: Model, *, text: str = "", mistakes: Mapping[str, Model] | None = None
) -> OfEachStep:
    """Expect what `returns` does, of values on the host: no jax.Array."""

    def problem(place: Place, step: Step) -> str | None:
        return f"a jax.Array still: {step}" if any(s.sharding for s in step.leaves) else None

    return _also(returns(model, text=text, mistakes=mistakes), "on the host", problem)


def _all_weak(place: Place, step: Step) -> tuple[bool, str]:
    return all(leaf.weak_type for leaf in step.leaves), str(step)


WEAKLY = OfEachStep("weakly typed, where it returns", _all_weak, claims=frozenset({WEAK_TYPE}))


def returns_weak(model: Model, weak: Callable[[Place], Sequence[bool]]) -> OfEachStep:
    """Expect what `returns` does, each leaf weakly typed or not as `weak(place)` says."""
    values = returns(model)
    assert isinstance(values, OfEachStep)

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        right, saw = values.check_step(place, step)
        seen, wanted = [leaf.weak_type for leaf in step.leaves], list(weak(place))
        if right and seen != wanted:
            text = f"weak types {seen} in place of {wanted}: {saw}"
            return False, Problem(text, Code.WEAK_TYPE)
        return right, saw

    return OfEachStep(f"{values.text}, its weak types", check_step, claims=COMPARED | {WEAK_TYPE})


def _also(
    values: Expectation, text: str, problem: Callable[[Place, Step], str | None]
) -> OfEachStep:
    if not isinstance(values, OfEachStep):
        raise TypeError(
            f"{values.text!r} is not about a step; give returns() or a combination of it"
        )

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        right, saw = values.check_step(place, step)
        other = problem(place, step) if right else None
        return right and other is None, Problem(other, Code.NOTE) if other else saw

    return OfEachStep(f"{values.text}, {text}", check_step)


def dealt_out(place: Place, sharding: Mapping[str, Any]) -> bool:
    """Return whether it is a PmapSharding of dimension 0 over these devices, for `sharded`."""
    here = place.topology.devices_per_process
    chunks = (
        rf"ShardingSpec\(\(Chunked\({here}\)(, NoSharding\(\))*,?\), \(ShardedAxis\(axis=0\),\)\)"
    )
    return (
        sharding["type"] == "PmapSharding"
        and len(sharding["devices"]) == here
        and re.fullmatch(chunks, str(sharding["spec"])) is not None
    )
