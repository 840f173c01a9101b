"""Compare what a step returned with a NumPy model, and describe the difference in a line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.spec.codes import Code, Problem
from conformance.spec.containers import flattened
from conformance.spec.observation import Leaf, Step
from conformance.spec.texts import described, text_of
from conformance.spec.topology import Place

RELATIVE_TOLERANCE = 1e-6  # of float32 arithmetic in another order; whole numbers are exact
HALF_TOLERANCE = 1e-2  # of the types named next
HALVES = ("bfloat16", "float16")

Model = Callable[[Place], Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """An array of typed PRNG keys in a model: the key data, and their dtype."""

    data: NDArray[Any]
    dtype: str = "key<fry>"  # as JAX prints it of Threefry's


def in_container(container: Callable[[Any], Any], model: Model) -> Model:
    """Return the model whose result is what `container` makes of another's."""

    @described(text_of(model))
    def contained(place: Place) -> Any:
        return container(model(place))

    return contained


def against(model: Model, place: Place, step: Step) -> Problem | None:
    """Return how what a step returned differs from the model; None if it does not.

    Containers are compared too: a tuple in place of a list is a difference.
    """
    wanted, tree = _expected(model, place)
    if len(wanted) != len(step.leaves):
        text = f"{len(step.leaves)} leaves in place of {len(wanted)}: {step}"
        return Problem(text, Code.ERROR if step.raised is not None else Code.SHAPE)
    contained = step.tree in (None, tree)
    for leaf, want in zip(step.leaves, wanted, strict=True):
        problem = difference(leaf, want if isinstance(want, Keys) else np.asarray(want))
        if problem is not None:
            beside = None if contained else Code.CONTAINER
            return Problem(str(problem), problem.code, beside=beside)
    if not contained:
        return Problem(f"{step.tree} in place of {tree}: {step}", Code.CONTAINER)
    return None


@functools.lru_cache(maxsize=256)  # several calls of a probe, and perturbed ones, ask for the same
def _expected(model: Model, place: Place) -> tuple[list[Any], str]:
    """Return the model's leaves and its structure."""
    leaves, tree = flattened(model(place))
    copied = [
        # A view keeps all that it is cut from.
        leaf.copy() if isinstance(leaf, np.ndarray) and leaf.base is not None else leaf
        for leaf in leaves
    ]
    return copied, tree


def difference(leaf: Leaf, want: NDArray[Any] | Keys) -> Problem | None:
    """Return how a leaf differs from the expected array, in a line; None if it does not."""
    if isinstance(want, Keys):
        if leaf.dtype != want.dtype:
            return Problem(f"dtype {leaf.dtype} in place of {want.dtype}: {leaf}", Code.DTYPE)
        return difference(replace(leaf, dtype=str(want.data.dtype)), want.data)
    if leaf.local is None:
        return Problem(f"no local values to compare: {leaf}", Code.SHAPE)
    if leaf.local.shape != want.shape:
        text = f"shape {list(leaf.local.shape)} in place of {list(want.shape)}: {leaf}"
        return Problem(text, Code.SHAPE)
    if leaf.dtype != str(want.dtype):
        return Problem(f"dtype {leaf.dtype} in place of {want.dtype}: {leaf}", Code.DTYPE)
    if leaf.local.dtype.kind not in "iub":
        tolerance = HALF_TOLERANCE if leaf.dtype in HALVES else RELATIVE_TOLERANCE
        # NumPy cannot compare bfloat16 within a tolerance.
        saw = leaf.local if leaf.local.dtype.kind == "c" else leaf.local.astype(np.float64)
        wanted_here = want.astype(saw.dtype)
        same = bool((saw == wanted_here).all()) or np.allclose(  # which takes ten times as long
            saw, wanted_here, rtol=tolerance, atol=0, equal_nan=True
        )
    else:
        same = bool(np.array_equal(leaf.local, want))
    if same:
        return None
    wanted = f"{leaf} in place of {' '.join(str(want).split())}"
    text = f"same shape, wrong values{_factor(leaf.local, want)}: {wanted}"
    return Problem(text, Code.VALUE)


def _factor(saw: NDArray[Any], want: NDArray[Any]) -> str:
    """Return `, 8 times the right ones` if one factor explains every element, else nothing."""
    if saw.dtype.kind not in "iuf" or not np.any(want):
        return ""
    if not (np.isfinite(saw).all() and np.isfinite(want).all()):
        return ""
    at = np.argmax(np.abs(want))
    factor = float(saw.flat[at]) / float(want.flat[at])
    if factor in (0.0, 1.0) or not np.allclose(saw, factor * want, rtol=RELATIVE_TOLERANCE, atol=0):
        return ""
    if abs(factor) < 1 and np.isclose(1 / factor, round(1 / factor)):
        return f", 1/{round(1 / factor)} of the right ones"
    return f", {factor:g} times the right ones"
