"""Where an issue may show: an implementation in one JAX, with one process or several."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from conformance.model.verdicts import Verdict
from reports.analysis.effects.pairs import Effects, Side, sides
from reports.store.order import LEGACY, version_order
from reports.store.outcomes import CellKey
from reports.store.results import Results
from reports.store.shown import ONE as ONE_PROCESS

ONE, SEVERAL = "one", "several"  # processes
KINDS = (ONE, SEVERAL)

# What says nothing of an implementation: it is not there, or does not apply.
_NOTHING = frozenset((Verdict.REMOVED, Verdict.NOT_APPLICABLE, Verdict.LEFT_OUT))


class Where(NamedTuple):
    """An implementation in one JAX."""

    implementation: str
    jax: str


def where(key: CellKey) -> Where:
    """Return the place of a cell."""
    return Where(key.implementation, key.target.jax or "")


@lru_cache(maxsize=1)  # asked of one set of results, many times
def jax_versions(results: Results) -> list[str]:
    """Return the versions of JAX that could be had, the oldest first."""
    return sorted(
        {t.jax for t in results.targets if t.jax and not t.unavailable}, key=version_order
    )


@lru_cache(maxsize=1)
def existing(results: Results) -> frozenset[Where]:
    """Return the implementations that each version has."""
    return frozenset(Where(one.implementation, one.jax) for one in sides(results))


@lru_cache(maxsize=1)
def removed(results: Results) -> frozenset[Where]:
    """Return the implementations that a version no longer has."""
    jax = {target.key: target.jax or "" for target in results.targets}
    return frozenset(
        Where(name, jax[target])
        for name, target, verdict in results.verdicts
        if verdict is Verdict.REMOVED
    )


@lru_cache(maxsize=64)
def newest_side(results: Results, implementation: str) -> Side | None:
    """Return the newest JAX that has an implementation, and runs what it ran before.

    Where it is gone a few programs still ask for it: that is not where it last was.
    """
    there = [side for side in sides(results) if side.implementation == implementation]
    ran = Counter(
        key.target
        for key, outcome in results.outcomes.items()
        if key.implementation == implementation and outcome.verdict not in _NOTHING
    )
    most = max((ran[side.target.key] for side in there), default=0)
    whole = [side for side in there if 2 * ran[side.target.key] >= most]
    return whole[-1] if whole else None


@lru_cache(maxsize=1)
def baseline(results: Results) -> Side | None:
    """Return what issues are compared with: the newest legacy pmap."""
    return newest_side(results, LEGACY)


def kind_of(effects: Effects, key: CellKey) -> str:
    """Return whether a cell has one process or several."""
    return ONE if effects.processes_of(key.clause, key.topology) == ONE_PROCESS else SEVERAL
