"""The sweep of library functions once more: the values that a body computes, against vmap's.

One map calls all functions of a family. What a shard_map's types refuse is left out here: the sweep
of `library_functions.py` names it.
"""

from __future__ import annotations

import functools
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
from conformance.spec.columns import Columns, everywhere
from conformance.spec.expectation import every, in_steps, noted, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family
from conformance.spec.names import SHARD_MAP
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

VALUES = "values"
DEADLINE_S = 420.0  # of a family whose samplers loop: it compiles for seconds on an idle machine
ROUNDING = 2e-4  # of the largest number of a result: a product of matrices is summed in any order
HUNDREDTH = 0.011  # what a call that rounds to two decimals may round otherwise
ROUNDED = ("cg", "gmres", "bicgstab", "minimize", "sqrtm", "polyfit", "multivariate_normal")


def apart(ours: Any, theirs: Any, rounded: bool) -> bool:
    """Return whether two results differ: numbers by more than rounding, whole numbers at all."""
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return any(_apart(np.asarray(a), np.asarray(b), rounded) for a, b in pairs)


def _apart(ours: Any, theirs: Any, rounded: bool) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return True
    if theirs.dtype.kind not in "fc":
        return not np.array_equal(ours, theirs)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return True
    ours, theirs = ours[finite], theirs[finite]
    most = ROUNDING * np.abs(theirs).max(initial=0) + (HUNDREDTH if rounded else 0)
    return bool((~(np.abs(ours - theirs) <= most)).any())


def of_vmap(functions: Functions, *, refuses: bool) -> Expectation:
    """Each function has vmap's values, and none was lost; some may be refused where `refuses`."""

    def same(place: Place, seen: Any) -> bool:
        compared, refused = seen.get("compared", 0), seen["refused"]
        each = compared + refused == len(functions.cases())
        return bool(compared > 0 and each and (refuses or not refused) and seen["differs"] == [])

    which = "each function that is accepted" if refuses else "each function"
    values = noted(VALUES, f"{which} returns what it does under vmap", same)
    ended = returns(lambda place: np.array(True), text="the values of each function's result")
    return every(in_steps(values, STEP), in_steps(ended, STEP))


def columns(functions: Functions, check: Check) -> Columns:
    """Only the types of shard_map refuse functions."""
    by_types = {SHARD_MAP: of_vmap(functions, refuses=check.on)}
    return asked(everywhere(of_vmap(functions, refuses=False)) | by_types, check)


@functools.cache
def under_vmap(family: str, names: tuple[str, ...]) -> Any:
    """The results of these functions of a family under vmap, which is the same for each map."""
    reference = called(FAMILIES[family], {}, list(names))
    given = rows(COUNT), WHOLE, keys(), KEY
    return jax.device_get(jax.jit(jax.vmap(reference, in_axes=AXES))(*given))


@family(
    "silences.library-values.{functions}.{check}",
    functions=FAMILIES,
    check=CHECKS,
    claim=CLAIM,
    title=lambda functions, check: f"In a mapped body: the values of {functions.text}{check.text}.",
    fact="silences.library-values",  # one: a family compiles for seconds, so core runs one of all
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    deadline_s=DEADLINE_S,
    expect=columns,
)
def computed(impl: Implementation, cluster: Cluster, functions: Functions, check: Check) -> None:
    """A map of a family of functions, and a vmap of those that it took, are run and compared."""
    refused: dict[str, str] = {}
    given = rows(COUNT), WHOLE, keys(), KEY
    mapped = impl.map(called(functions, refused), in_axes=AXES, check_vma=check.on)
    seen: dict[str, Any] = {}

    def compare() -> Any:
        ours = jax.device_get(mapped(*given))
        theirs = under_vmap(functions.key, tuple(ours))
        seen["compared"] = len(theirs)
        seen["differs"] = sorted(
            name for name in ours if apart(ours[name], theirs[name], name.split(",")[0] in ROUNDED)
        )
        return np.array(bool(ours))

    cluster.step(STEP, compare)
    cluster.note(VALUES, {**seen, "refused": len(refused)})
