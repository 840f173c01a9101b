"""The columns that a reader compares: the last legacy pmap, and the newest of the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from reports.analysis.effects.pairs import Side
from reports.analysis.issues.places import newest_side
from reports.render.site.strips import versions
from reports.store.order import LEGACY, NEW, SHARD_MAP, short_implementation
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
    some = (newest_side(results, name) for name in (LEGACY, NEW, SHARD_MAP))
    return tuple(
        Column(side, named[side.target.key], side.implementation == LEGACY)
        for side in some
        if side is not None
    )
