"""By which factor a gradient differs from the wanted one, from the cells that took it.

The reference gradients are recorded themselves: each device's own gradient is what the clause
`rewriting.gradients.own.stacked` returned on the same topology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isclose
from typing import NamedTuple

from reports.analysis.effects.digest import RAISED, RETURNED, Digest
from reports.analysis.effects.pairs import Effects
from reports.analysis.issues.places import newest_side
from reports.store.order import LEGACY, NEW, SHARD_MAP, version_order
from reports.store.outcomes import CellKey
from reports.store.results import Results

_OWN = "rewriting.gradients.own.stacked"
_FIRST = "first call"
_TOLERANCE = 1e-4  # of sums in another order


class Wanted(StrEnum):
    """The gradient that a programmer wants."""

    OWN = "own"
    SUM = "sum"
    MEAN = "mean"


class Form(NamedTuple):
    """One way to take a gradient: its code, its clauses, and what is wanted of it.

    `several` is the stem of its clauses in several processes, where that is another one.
    """

    code: str
    stem: str
    wanted: Wanted
    several: str | None = None


_IN = "rewriting.gradients."
_AROUND, _SEVERAL = f"{_IN}outside.", f"{_IN}several-processes."
IN_THE_BODY = (
    Form("grad(loss)", f"{_IN}own", Wanted.OWN),
    Form("psum(grad(loss))", f"{_IN}psum-of-gradient", Wanted.SUM),
    Form("pmean(grad(loss))", f"{_IN}pmean-of-gradient", Wanted.MEAN),
    Form("grad(psum(loss))", f"{_IN}gradient-of-psum", Wanted.SUM),
    Form("grad(pmean(loss))", f"{_IN}gradient-of-pmean", Wanted.MEAN),
    Form("pmean(grad(pmean(loss)))", f"{_IN}pmean-of-gradient-of-pmean", Wanted.MEAN),
)
AROUND_THE_MAP = (
    Form("grad(map(loss).sum())", f"{_AROUND}own-added-up", Wanted.SUM, f"{_SEVERAL}own"),
    Form("grad(map(psum(loss))[0])", f"{_AROUND}psum-first", Wanted.SUM, f"{_SEVERAL}psum-first"),
    Form("grad(map(psum(loss)).sum())", f"{_AROUND}psum-added-up", Wanted.SUM, f"{_SEVERAL}psum"),
    Form("grad(map(psum(loss), out_axes=None))", f"{_AROUND}psum-replicated", Wanted.SUM, ""),
    Form(
        "grad(map(pmean(loss))[0])", f"{_AROUND}pmean-first", Wanted.MEAN, f"{_SEVERAL}pmean-first"
    ),
    Form(
        "grad(map(pmean(loss)).sum())", f"{_AROUND}pmean-added-up", Wanted.MEAN, f"{_SEVERAL}pmean"
    ),
    Form("grad(map(pmean(loss), out_axes=None))", f"{_AROUND}pmean-replicated", Wanted.MEAN, ""),
)
PARAMETERS = (
    ("stacked", "mapped: a copy per device"),
    ("unmapped", "unmapped: `in_axes=None`, `P()`"),
    ("closed-over", "closed over"),
    ("cast", "unmapped, `pcast` to varying in the body"),
)
# Implementation, and the end of the clauses' ids with this setting of check_vma.
COLUMNS = (
    (LEGACY, "", "legacy pmap"),
    (NEW, "", "new pmap"),
    (SHARD_MAP, "", "shard_map"),
    (SHARD_MAP, ".unchecked", "shard_map, `check_vma=False`"),
)
TOPOLOGIES = ("1x8", "4x2")


@dataclass(frozen=True, slots=True)
class Factor:
    """What a cell returned, as a factor of the wanted gradient; `clause` shows it.

    `says` is empty where no clause tests it, `right` whether it is the wanted gradient. `jax` is
    the version, and `until` the newest one, if that raises.
    """

    says: str = ""
    right: bool = False
    clause: str = ""
    jax: str = ""
    until: str = ""


def factor(
    effects: Effects, form: Form, passing: str, implementation: str, check: str, topology: str
) -> Factor:
    """Return the factor of a way to take a gradient, in the newest version of an implementation."""
    several = topology != TOPOLOGIES[0]
    stem = form.stem if not several or form.several is None else form.several
    clause = f"{stem}.{passing}{check}"
    side = newest_side(effects.results, implementation)
    if not stem or clause not in effects.results.clauses or side is None:
        return Factor()
    targets = sorted(effects.results.targets, key=lambda one: version_order(one.jax or ""))
    raised = ""
    for target in reversed(targets):
        if version_order(target.jax or "") > version_order(side.jax):
            continue
        digest = effects.digest_of(CellKey(clause, target.key, implementation, topology))
        if digest is None:
            continue
        own = effects.digest_of(CellKey(_OWN, target.key, implementation, topology))
        found = _factor(digest, own, form.wanted)
        if found is not None:
            says, right = found
            return Factor(says, right, clause, target.jax or "", raised)
        raised = raised or target.jax or ""
    return Factor("error", False, clause, raised) if raised else Factor()


def _factor(digest: Digest, own: Digest | None, wanted: Wanted) -> tuple[str, bool] | None:
    """Return the factor and whether it is 1; None if the first call raised."""
    rows = _rows(own)
    if not rows:
        return None
    devices, here = sum(len(some) for some in rows.values()), len(next(iter(rows.values())))
    words = []
    for process, steps in digest.processes:
        step = next((one for one in steps if one.name == _FIRST), None)
        if step is None or step.outcome == RAISED or not step.leaves or not step.leaves[0].values:
            return None
        words.append(_words(step.leaves[0].values, process, rows, wanted, devices, here))
    unlike = dict.fromkeys(words)
    return ("; ".join(unlike), words == ["1"] * len(words)) if words else None


def _rows(own: Digest | None) -> Mapping[int, Sequence[Sequence[float]]]:
    """Return the own gradients of each process's devices."""
    if own is None:
        return {}
    found = {}
    for process, steps in own.processes:
        step = next((one for one in steps if one.name == _FIRST), None)
        if step is None or step.outcome != RETURNED or not step.leaves:
            return {}
        leaf = step.leaves[0]
        width = leaf.shape[-1]
        values = leaf.values or ()
        found[process] = [values[at : at + width] for at in range(0, len(values), width)]
    return found


def _words(
    values: Sequence[float],
    process: int,
    rows: Mapping[int, Sequence[Sequence[float]]],
    wanted: Wanted,
    devices: int,
    here: int,
) -> str:
    every = [row for some in rows.values() for row in some]
    total = [sum(column) for column in zip(*every, strict=True)]
    local = [sum(column) for column in zip(*rows[process], strict=True)]
    count = len(values) // len(total)
    own = [value for row in rows[process][:count] for value in row]
    references = {
        Wanted.OWN: ("own gradient", own),
        Wanted.SUM: ("sum over all devices", total * count),
        Wanted.MEAN: ("mean over all devices", [one / devices for one in total] * count),
    }
    ratio = _ratio(values, references[wanted][1])
    if ratio is not None:
        return _times(ratio, devices, here)
    others = [*(pair for key, pair in references.items() if key is not wanted)]
    for name, reference in (*others, ("sum over this process's devices", local * count)):
        ratio = _ratio(values, reference)
        if ratio is not None:
            times = _times(ratio, devices, here)
            return name if times == "1" else f"{times} × {name}"  # noqa: RUF001
    return "another gradient"


def _ratio(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the one number by which a reference is multiplied; None if there is none."""
    if len(values) != len(reference) or not all(reference):
        return None
    ratio = values[0] / reference[0]
    same = (
        isclose(a, ratio * b, rel_tol=_TOLERANCE) for a, b in zip(values, reference, strict=True)
    )
    return ratio if ratio and all(same) else None


def _times(ratio: float, devices: int, here: int) -> str:
    """Return a factor in terms of the number of devices N, local devices n, and processes P."""
    several = {"P": devices / here, "n": float(here)} if here != devices else {}
    named = {"N": float(devices), **several}
    for name, value in {"1": 1.0, **named}.items():
        if isclose(ratio, value, rel_tol=_TOLERANCE):
            return name
        if isclose(ratio, 1 / value, rel_tol=_TOLERANCE):
            return f"1/{name}"
    return f"{ratio:g}"


def taken(results: Results) -> bool:
    """Return whether the results have any gradient."""
    return any(id.startswith(_IN) for id in results.clauses)


def forms() -> Iterator[tuple[str, tuple[Form, ...]]]:
    """Yield the places of a gradient with its forms."""
    yield "In the mapped body", IN_THE_BODY
    yield "Around the map", AROUND_THE_MAP
