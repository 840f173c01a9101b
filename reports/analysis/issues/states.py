"""What an issue does in one place: the states of its tests, and what is known where few ran.

A version of which only the core tier was run has few of an issue's tests. What those few show is
compared with the same tests in the nearest versions in which all of them ran: only where they agree
is the state of these versions taken over, and it is marked. Nothing is said of an issue of which
no test ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from reports.analysis.effects.effect import Effect


class State(StrEnum):
    """What is known of an issue in a place; the value is its name on pages."""

    AFFECTED = "affected"
    SAME = "not new"
    OTHERWISE = "another issue"
    FREE = "not affected"
    NOT_TESTED = "not tested"
    REMOVED = "removed"


class Seen(NamedTuple):
    """How one test ended in a place: whether it shows the issue, its effect, whether it holds.

    `by` is the other issue by which it fails, `raises` whether its program raises; neither is of
    a test that shows the issue.
    """

    shows: bool
    effect: Effect | None
    holds: bool
    by: str = ""
    raises: bool = False

    def alike(self, other: Seen) -> bool:
        """Return whether both tests say the same of the issue."""
        return self[:4] == other[:4]


@dataclass(frozen=True, slots=True)
class Found:
    """The state of an issue in a place.

    `between`: few tests ran, which did as in the versions on both sides; or, with `beside`, as in
    the nearest version in which all of them ran. `by` names the issues by which its tests fail.
    `raising`: how many of how many tests raise, of those that do not show the issue: of those that
    fail where it is another issue, else of those that pass, as they should.
    """

    state: State
    effect: Effect | None = None
    between: bool = False
    beside: str = ""
    by: tuple[str, ...] = ()
    raising: tuple[int, int] = (0, 0)

    @property
    def of_others(self) -> bool:
        """Whether it is taken over from other versions."""
        return self.between or bool(self.beside)

    def same(self, other: Found) -> bool:
        """Return whether both say the same."""
        return (self.state, self.effect) == (other.state, other.effect)


NOT_TESTED = Found(State.NOT_TESTED)
REMOVED = Found(State.REMOVED)

Tests = Mapping[str, Seen]  # of one place, by test


def timeline(
    versions: Sequence[str],
    seen: Mapping[str, Tests],
    judged: Mapping[str, frozenset[str]],
    tests: frozenset[str],
    bounded: Callable[[str, str, str], bool],
) -> dict[str, Found]:
    """Return the state of an issue in each version, for one implementation and kind of topology.

    `versions` are those that have the implementation, in order; `seen` are the tests that ran;
    `judged` those that ran or do not apply; `tests` all tests that show it somewhere. `bounded`
    says whether the issue's program was run in a version and does there as in two others.
    """
    whole = [jax for jax in versions if tests <= judged.get(jax, frozenset())]
    found = {jax: _own(seen.get(jax, {}), len(tests), _telling(jax, whole, seen)) for jax in whole}
    at = {jax: place for place, jax in enumerate(versions)}
    for jax in versions:
        if jax not in whole:
            before = next((one for one in reversed(whole) if at[one] < at[jax]), None)
            after = next((one for one in whole if at[one] > at[jax]), None)
            found[jax] = _partly(jax, before, after, found, seen, bounded)
    return found


def _telling(here: str, versions: Sequence[str], seen: Mapping[str, Tests]) -> frozenset[str]:
    """Return the tests that show the issue in the nearest versions that have it, on both sides.

    Where it is absent these pass: one that passes in those versions too says nothing of it.
    """
    at = versions.index(here)
    nearest = (
        next((one for jax in side if (one := _shown(seen.get(jax, {})))), frozenset[str]())
        for side in (versions[:at][::-1], versions[at + 1 :])
    )
    return frozenset().union(*nearest)


def _shown(tests: Tests) -> frozenset[str]:
    return frozenset(name for name, one in tests.items() if one.shows)


def _own(tests: Tests, count: int, telling: frozenset[str] = frozenset()) -> Found:
    """Return the state by the tests that ran, of `count` that show the issue somewhere.

    It is another issue if most of them fail by one, or all of those that are `telling`.
    """
    shown = [one.effect for one in tests.values() if one.shows]
    effects = [effect for effect in shown if effect is not None]
    if effects:
        return Found(State.AFFECTED, min(effects, key=lambda one: one.rank))
    if shown:
        return Found(State.SAME)
    failed = [one for one in tests.values() if not one.holds]
    asked = [tests[name] for name in telling if name in tests]
    hidden = bool(asked) and not any(one.holds for one in asked)
    if tests and (hidden or 2 * len(failed) > count):
        by = Counter(one.by for one in failed if one.by)
        names = tuple(name for name, _ in by.most_common())
        return Found(
            State.OTHERWISE, by=names, raising=(sum(one.raises for one in failed), len(tests))
        )
    raising = sum(one.holds and one.raises for one in tests.values())
    return Found(State.FREE, raising=(raising, len(tests))) if tests else NOT_TESTED


def _partly(
    jax: str,
    before: str | None,
    after: str | None,
    found: Mapping[str, Found],
    seen: Mapping[str, Tests],
    bounded: Callable[[str, str, str], bool],
) -> Found:
    """Return the state in a version in which not all tests ran."""
    here = seen.get(jax, {})
    own = _own(here, len(here))
    sides = [one for one in (before, after) if one is not None]
    agree = [one for one in sides if _agree(here, seen.get(one, {}))]
    equal = before is not None and after is not None and found[before].same(found[after])
    if before is not None and after is not None and equal:
        confirmed = bool(agree) or (not here and bounded(jax, before, after))
        if confirmed and own.same(found[before]):
            return own
        if confirmed:
            return replace(found[before], between=True)
    if own.state in (State.AFFECTED, State.SAME):
        shows = [one for one in agree if found[one].state in (State.AFFECTED, State.SAME)]
        if not shows or own.same(found[shows[0]]):
            return own
        return replace(found[shows[0]], beside=shows[0])
    # It is absent here only if a test ran that shows it next to here, or it is absent there too.
    telling = any(
        one.shows for side in sides for test, one in seen.get(side, {}).items() if test in here
    )
    absent = bool(agree) and all(found[one].same(own) for one in sides)
    return own if telling or absent else NOT_TESTED


def _agree(here: Tests, there: Tests) -> bool:
    """Return whether the tests that ran here ended there in the same way."""
    common = [test for test in here if test in there]
    return bool(common) and all(here[test].alike(there[test]) for test in common)
