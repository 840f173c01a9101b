"""A sweep of JAX's library functions in a body, each against the same function under vmap.

A function is called with what varies by device and with what is equal on all. One map calls all of
a family: what raises while the body is traced is noted by its name and left out. Types decide what
a body takes, so that nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.sections.silences.library_cases import FAMILIES, WHOLE, Functions, rows
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import every, in_steps, noted, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.library-functions"
COUNT = 8  # devices
LEFT_OUT = "what a body computes of its row is its device's own affair"
OUTCOMES = "outcomes"
STEP = "all functions"
SHOWN = 60  # characters of an error
AXES = (0, None, 0, None)  # a row, an unmapped array, a mapped key, an unmapped key


def keys() -> Any:
    """A raw key for each device."""
    return np.array([(0, seed) for seed in range(COUNT)], np.uint32)


KEY = np.array((7, 9), np.uint32)


def called(
    functions: Functions, raised: dict[str, str], only: list[str] | None = None
) -> Callable[..., Any]:
    """A body that calls the functions, of which what raises is noted; `only` are those called."""

    def body(x: Any, w: Any, k: Any, q: Any) -> dict[str, Any]:
        results = {}
        wrap = jax.random.wrap_key_data
        for name, case in functions.cases().items():
            if only is not None and name not in only:
                continue
            try:
                results[name] = case(x, w, wrap(k), wrap(q))
            except Exception as error:
                text = " ".join(str(error).split())[:SHOWN]
                raised[name] = f"{type(error).__name__}: {text}"
        return results

    return body


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
