"""How many known issues a program can meet in a version, by severity; which is safest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Usage
from reports.analysis.issues.derive import issues
from reports.analysis.issues.issue import Issue
from reports.analysis.issues.places import ONE, SEVERAL, Where, existing


class RiskKind(StrEnum):
    """A column of counts, the most severe first; the value is part of addresses."""

    FATAL = "crashes"
    WRONG = "wrong"
    ERRORS = "errors"
    COSTS = "costs"

    @property
    def heading(self) -> str:
        """The heading of a column of counts."""
        return _HEADINGS.get(self) or self.value.capitalize()

    @property
    def words(self) -> str:
        """What is counted, in words."""
        return _WORDS[self]

    def counted(self, count: int) -> str:
        """Return a number of issues in words."""
        return f"{count} {_ONE.get(self, self.words) if count == 1 else self.words}"


_HEADINGS = {RiskKind.FATAL: "Likely crashes", RiskKind.WRONG: "Wrong values"}
_WORDS = {
    RiskKind.FATAL: "crashes and hangs",
    RiskKind.WRONG: "wrong values",
    RiskKind.ERRORS: "errors",
    RiskKind.COSTS: "costs (communication, memory or time)",
}
_ONE = {
    RiskKind.FATAL: "crash or hang",
    RiskKind.WRONG: "wrong value",
    RiskKind.ERRORS: "error",
    RiskKind.COSTS: "cost (communication, memory or time)",
}
_OF_EFFECT = {
    Effect.CRASHES: RiskKind.FATAL,
    Effect.HANGS: RiskKind.FATAL,
    Effect.WRONG_NUMBERS: RiskKind.WRONG,
    Effect.RAISES: RiskKind.ERRORS,
    Effect.MOVES_MORE: RiskKind.COSTS,
    Effect.NEEDS_MORE_MEMORY: RiskKind.COSTS,
    Effect.SLOWER: RiskKind.COSTS,
}
_ORDINARY = (Usage.ORDINARY, Usage.COMMON)


@dataclass(frozen=True, slots=True)
class Risk:
    """The known issues that an ordinary program can meet in a version, each defect once.

    `fatal` are all that crash or hang there, of whatever usage. `untested` are those of other
    versions without a test.
    """

    counted: tuple[tuple[RiskKind, tuple[Issue, ...]], ...]
    fatal: tuple[Issue, ...] = ()
    untested: tuple[Issue, ...] = ()

    def count(self, severity: RiskKind) -> int:
        """Return how many issues have a severity."""
        return len(dict(self.counted)[severity])

    @property
    def score(self) -> tuple[int, ...]:
        """A sort key, the safest first: fewest crashes, then wrong values, crashes of whatever
        usage, errors, costs. An error shows at once.
        """
        crashes, wrong, *rest = (self.count(kind) for kind in RiskKind)
        return crashes, wrong, len(self.fatal), *rest

    @property
    def words(self) -> str:
        """The counts in words, without what is none."""
        some = [severity.counted(len(found)) for severity, found in self.counted if found]
        rare = len(self.fatal) - self.count(RiskKind.FATAL)
        if rare > 0:
            some.append(f"{RiskKind.FATAL.counted(rare)} with rare arguments or after mistakes")
        return ", ".join(some) or "none"


def risk(
    effects: Effects, where: Where, processes: str, others: Iterable[Where] = ()
) -> Risk | None:
    """Return the risk of a version; None if nothing was run.

    Issues of one defect count once, as the most severe of them; of equals, as the one that the
    others are a part of. What depends on a library's version
    does not count, nor do unusual arguments, nor what follows an earlier failure.
    """
    some = [one for one in issues(effects) if not one.library]
    there = where in existing(effects.results)
    if not there or not any(one.was_tested(where, processes) for one in some):
        return None
    worst: dict[str, tuple[Effect, Issue]] = {}
    for one in some:
        effect = one.at(where, processes)
        if effect is None or one.usage not in _ORDINARY:
            continue
        defect = _defect(one)
        if defect not in worst or _rank(effect, one) < _rank(*worst[defect]):
            worst[defect] = effect, one
    counted = {severity: list[Issue]() for severity in RiskKind}
    for effect, one in worst.values():
        if effect in _OF_EFFECT:
            counted[_OF_EFFECT[effect]].append(one)
    places = list(others)
    return Risk(
        tuple((severity, tuple(found)) for severity, found in counted.items()),
        tuple(_once(_fatal(some, where, processes))),
        tuple(
            one
            for one in some
            if not one.was_tested(where, processes)
            and any(_counts(one, one.at(place, processes)) for place in places)
        ),
    )


def _counts(issue: Issue, effect: Effect | None) -> bool:
    """Return whether an issue with this effect is in any count of a version."""
    kind = _OF_EFFECT.get(effect or Effect.SAME)
    return kind is not None and (issue.usage in _ORDINARY or kind is RiskKind.FATAL)


def _rank(effect: Effect, issue: Issue) -> tuple[int, bool]:
    return effect.rank, bool(issue.cause.part_of)


def _defect(issue: Issue) -> str:
    return issue.cause.part_of or issue.cause.cause


def _fatal(some: Iterable[Issue], where: Where, processes: str) -> Iterator[Issue]:
    """Yield those that crash or hang in a place; with several processes also those that do with one
    and have no test with several.
    """
    for one in some:
        effect = one.at(where, processes)
        if effect is None and processes == SEVERAL and not one.has_tests(where, SEVERAL):
            effect = one.at(where, ONE)
        if _OF_EFFECT.get(effect or Effect.SAME) is RiskKind.FATAL:
            yield one


def _once(some: Iterable[Issue]) -> list[Issue]:
    """One issue of each defect: the one that others are a part of, where it is among them."""
    found: dict[str, Issue] = {}
    for one in some:
        if _defect(one) not in found or not one.cause.part_of:
            found[_defect(one)] = one
    return list(found.values())


def safest(some: Sequence[tuple[str, Risk | None]]) -> tuple[str, ...]:
    """Return the versions with the least risk, of those in which every issue was tested."""
    whole = [(jax, one) for jax, one in some if one is not None and not one.untested]
    best = min((one.score for _, one in whole), default=None)
    return tuple(jax for jax, one in whole if one.score == best)
