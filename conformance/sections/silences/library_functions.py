"""A sweep of JAX's library functions in a body, each against the same function under vmap.

A function is called with what varies by device and with what is equal on all. One map calls all of
a family: what raises while the body is traced is noted by its name and left out. Types decide what
a body takes, so that nothing is compiled.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.sections.silences.library_cases import (
    AXES,
    CLAIM,
    COUNT,
    FAMILIES,
    KEY,
    LEFT_OUT,
    STEP,
    WHOLE,
    Functions,
    called,
    keys,
    rows,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import every, in_steps, noted, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

OUTCOMES = "outcomes"


def described(tree: Any) -> list[str]:
    """The shapes and dtypes of a result."""
    return [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)]


def as_under_vmap(functions: Functions) -> Expectation:
    """Each call is traced, with the shapes and dtypes that it has under vmap."""

    def all_same(place: Place, seen: Any) -> bool:
        return bool(seen == {"raises": {}, "differs": []})

    same = noted(OUTCOMES, "each function is taken, and typed as under vmap", all_same)
    ended = returns(lambda place: np.array(True), text="a type of each function's result")
    return every(in_steps(same, STEP), in_steps(ended, STEP))


@family(
    "silences.library.{functions}.{check}",
    functions=FAMILIES,
    check=CHECKS,
    only=lambda functions, check: check.on or functions.refused,
    claim=CLAIM,
    title=lambda functions, check: f"In a mapped body: {functions.text}{check.text}.",
    fact="silences.library.{functions}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda functions, check: asked(everywhere(as_under_vmap(functions)), check),
)
def swept(impl: Implementation, cluster: Cluster, functions: Functions, check: Check) -> None:
    """A map of a family of functions, traced, and a vmap of those that it took."""
    raised: dict[str, str] = {}
    given = rows(COUNT), WHOLE, keys(), KEY
    mapped = impl.map(called(functions, raised), in_axes=AXES, check_vma=check.on)
    found: list[str] = []

    def compare() -> Any:
        ours = jax.eval_shape(mapped, *given)
        reference = called(functions, {}, list(ours))
        theirs = jax.eval_shape(jax.vmap(reference, in_axes=AXES), *given)
        found.extend(name for name in ours if described(ours[name]) != described(theirs[name]))
        return np.array(bool(ours))

    cluster.step(STEP, compare)
    cluster.note(OUTCOMES, {"raises": dict(sorted(raised.items())), "differs": sorted(found)})
