"""A known issue, and what it does in each implementation, version and kind of topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.model.records import JAX, Cause
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.rewrites import Usage, weight
from reports.analysis.issues.places import KINDS, ONE, SEVERAL, Where
from reports.analysis.issues.states import NOT_TESTED, REMOVED, Found, State
from reports.store.order import SHARD_MAP, implementation_order

Row = tuple[str, str]  # implementation, and one process or several
# What is told of a place of which two rows say different things, the first of them.
_ORDER = (
    State.AFFECTED,
    State.SAME,
    State.OTHERWISE,
    State.FREE,
    State.NOT_TESTED,
    State.REMOVED,
)
_WORDS = {ONE: "one process", SEVERAL: "several processes"}


@dataclass(frozen=True, slots=True)
class Issue:
    """A known issue and its state in each version, by implementation and number of processes.

    `rows` are the implementations that show it; `others` those that were tested too. `library` is
    what it depends on instead of JAX; `gone` are the implementations that a version no longer has.
    """

    cause: Cause
    usage: Usage
    library: str = ""
    rows: Mapping[Row, Mapping[str, Found]] = field(default_factory=dict)
    others: Mapping[Row, Mapping[str, Found]] = field(default_factory=dict)
    gone: frozenset[Where] = frozenset()

    @property
    def implementations(self) -> tuple[str, ...]:
        """The implementations that show it anywhere."""
        return tuple(sorted({name for name, _ in self.rows}, key=implementation_order))

    @property
    def worst(self) -> Effect | None:
        """The most severe effect anywhere; None if it has none."""
        return _worst(self.rows.values())

    def worst_under(self, implementation: str) -> Effect | None:
        """Return the most severe effect under an implementation; None if it has none there."""
        return _worst(row for (name, _), row in self.rows.items() if name == implementation)

    def found(self, where: Where, processes: str = "") -> Found:
        """Return its state in a place; programs that map nothing count for every
        implementation.
        """
        own, others = (
            [
                table[row][where.jax]
                for row in self._keys(where, processes)
                if row in table and where.jax in table[row]
            ]
            for table in (self.rows, self.others)
        )
        # By which other issue a row fails that never shows this one says nothing of this one.
        telling = [one for one in others if one.state is not State.OTHERWISE]
        some = [*own, *telling] or others
        return min(some, key=_severity, default=REMOVED if where in self.gone else NOT_TESTED)

    def at(self, where: Where, processes: str = "") -> Effect | None:
        """Return its effect in a place; None if it has none there, or was not tested."""
        return self.found(where, processes).effect

    def was_tested(self, where: Where, processes: str = "") -> bool:
        """Return whether anything is known of it in a place."""
        return self.found(where, processes).state is not State.NOT_TESTED

    def has_tests(self, where: Where, processes: str) -> bool:
        """Return whether a test of it has so many processes, in whichever version."""
        keys = self._keys(where, processes)
        return any(key in table for table in (self.rows, self.others) for key in keys)

    def shown_in(self, implementation: str) -> frozenset[str]:
        """Return the versions in which an implementation shows it, with or without an effect."""
        return frozenset(
            jax
            for (name, _), row in self.rows.items()
            if name == implementation
            for jax, one in row.items()
            if one.state in (State.AFFECTED, State.SAME)
        )

    def processes(self, where: Where) -> str:
        """Return with how many processes it has an effect in a place, and which if they differ."""
        one, several = (self.found(where, kind) for kind in KINDS)
        if one.effect is None:
            # A question to several processes alone needs no result of one.
            asked = one.state is State.NOT_TESTED and any(kind == ONE for _, kind in self.rows)
            return f"several processes{'; one not tested' if asked else ' only'}"
        if several.effect is None:
            rest = "; several not tested" if several.state is State.NOT_TESTED else ""
            return f"one process{rest}"
        if one.effect is several.effect:
            return "one process and several"
        milder, kind = max(
            (one.effect, ONE), (several.effect, SEVERAL), key=lambda pair: pair[0].rank
        )
        return f"with {_WORDS[kind]}: {milder.words}"

    def weight(self, places: Iterable[Where]) -> float:
        """Return severity times likelihood in its worst place."""
        found = (self.at(where) for where in places)
        return max((weight(effect, self.usage) for effect in found if effect), default=0.0)

    @property
    def _of_shard_map_alone(self) -> bool:
        """Return whether it concerns callers of shard_map and none of pmap, as its tags say."""
        tags = " ".join(self.cause.tags)
        return SHARD_MAP in tags and "pmap" not in tags

    def _keys(self, where: Where, processes: str) -> tuple[Row, ...]:
        kinds = (processes,) if processes else KINDS
        # What maps nothing counts for every implementation that is there, if it concerns it.
        plain = where not in self.gone and (
            where.implementation == SHARD_MAP or not self._of_shard_map_alone
        )
        names = (where.implementation, JAX) if plain else (where.implementation,)
        return tuple((name, kind) for name in names for kind in kinds)


def _worst(rows: Iterable[Mapping[str, Found]]) -> Effect | None:
    every = (one.effect for row in rows for one in row.values())
    return min((one for one in every if one), key=lambda one: one.rank, default=None)


def _severity(found: Found) -> tuple[int, int, int]:
    rank = found.effect.rank if found.effect else 0
    return _ORDER.index(found.state), rank, -found.raising[0]
