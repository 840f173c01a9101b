"""Expectations of memory peaks that a probe measured and noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance.spec.expectation import OfEachStep, noted, steps
from conformance.spec.expected import Expectation
from conformance.spec.observation import Step
from conformance.spec.topology import Place


def figured(
    key: str, text: str, holds: Callable[[Place, Any], bool], *, at_most: bool = False
) -> Expectation:
    """Expect what `noted` does, of a step that returned: the figure of a failed call means
    nothing.
    """
    figure = noted(key, text, holds, at_most=at_most)
    if not isinstance(figure, OfEachStep):
        raise TypeError("a figure is noted of one step")

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        return (False, str(step)) if step.raised is not None else figure.check_step(place, step)

    return replace(figure, check_step=check_step)


def known_within(resolution: float) -> Expectation:
    """Expect the step `known` to measure an allocation of known size within `resolution`."""
    return steps(
        known=figured(
            "known",
            f"an allocation of known size is measured as 1 within {resolution}",
            lambda _, seen: abs(seen - 1) <= resolution,
        )
    )
