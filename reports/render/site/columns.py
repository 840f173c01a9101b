"""The columns that a reader compares: the last legacy pmap, and the newest of the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from reports.analysis.effects.pairs import LEGACY, NEW, SHARD_MAP, Side, sides
from reports.render.site.marks import Mark, mark_of
from reports.render.site.strips import versions
from reports.store.order import short_implementation
from reports.store.results import Results


@dataclass(frozen=True, slots=True)
class Column:
    """An implementation in one JAX; `baseline` is the reference of the others."""

    side: Side
    version: str
    baseline: bool

    @property
    def css(self) -> str:
        """The class of its cells: on a phone, which shows no column heads, it labels each cell."""
        return short_implementation(self.side.implementation)


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def columns(results: Results) -> tuple[Column, ...]:
    """Return the last column of each implementation, the baseline first."""
    named = dict(zip((t.key for t in results.targets), versions(results), strict=True))
    ran = Counter(
        (key.implementation, key.target)
        for key, outcome in results.outcomes.items()
        if mark_of(outcome.verdict) is not Mark.NONE
    )
    found = []
    for implementation in (LEGACY, NEW, SHARD_MAP):
        there = [side for side in sides(results) if side.implementation == implementation]
        # Where it is gone a few programs still ask for it: that is not where it last was.
        most = max((ran[side.implementation, side.target.key] for side in there), default=0)
        whole = [side for side in there if 2 * ran[side.implementation, side.target.key] >= most]
        if whole:
            found.append(Column(whole[-1], named[whole[-1].target.key], implementation == LEGACY))
    return tuple(found)
