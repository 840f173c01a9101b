"""The remedies of known issues, and where they work.

A clause shows what to do instead; its cells show whether that helps. Pages word it themselves, but
what is a remedy of what, and where it works, is decided only here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from conformance.model.records import Cause, TargetKey
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import cause_of
from reports.store.codes import ERROR, RIGHT, WITHOUT_THE_FIX
from reports.store.older import code_of, completed
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results

FAILED = (Verdict.DEVIATES, Verdict.KNOWN_DEVIATION, Verdict.FLAKY)
_DIED = (Verdict.CRASHED, Verdict.HUNG)


class Help(StrEnum):
    """Whether a remedy helps, in the order in which readers want them."""

    WORKS = "what works instead"
    FAILS = "does not help"
    UNTRIED = "not tried there"


class Fared(NamedTuple):
    """A remedy's outcome under an implementation in one JAX, by topology.

    `refused`: an error is expected after the step without the fix, so that "works" means that it
    raises.
    """

    works: tuple[str, ...]
    fails: tuple[str, ...]
    not_run: tuple[str, ...]
    refused: bool


def fared(results: Results, clause: str, implementation: str, target: TargetKey) -> Fared:
    """Return where a remedy works, where it fails, and where it was not run.

    It works, too, where a document says that it raises and it returns the right values.
    """
    places: dict[Verdict, list[str]] = {}
    refused = False
    for topology in results.grid[clause]:
        outcome = results.outcome(CellKey(clause, target, implementation, topology))
        if _right_in_place_of_an_error(outcome):
            places.setdefault(Verdict.CONFORMS, []).append(topology)
            continue
        places.setdefault(outcome.verdict, []).append(topology)
        refused = refused or _expects_an_error(outcome)

    def on(*verdicts: Verdict) -> tuple[str, ...]:
        found = {where for verdict in verdicts for where in places.get(verdict, ())}
        return tuple(where for where in results.grid[clause] if where in found)

    return Fared(
        works=on(Verdict.CONFORMS),
        fails=on(*FAILED, *_DIED),
        not_run=on(Verdict.NOT_RUN, Verdict.UNKNOWN),
        refused=refused,
    )


def _right_in_place_of_an_error(outcome: Outcome) -> bool:
    """Return whether a cell fails for one reason only: where an error is expected, it returns the
    right values.
    """
    findings = outcome.runs[-1].cell.findings if outcome.runs else ()
    failed = [completed(one) for one in findings if not one.holds]
    return bool(failed) and all(one.error_expected and one.values == RIGHT for one in failed)


def _expects_an_error(outcome: Outcome) -> bool:
    """Return whether an error is expected of a step of a cell, other than that without the fix."""
    findings = outcome.runs[-1].cell.findings if outcome.runs else ()
    return any(
        (code_of(one) == ERROR if one.holds else completed(one).error_expected)
        for one in findings
        if one.step != WITHOUT_THE_FIX
    )


@dataclass(frozen=True, slots=True)
class Remedy:
    """A clause that shows what to do instead, and where it works on the new side.

    `refused`: an error is expected of it there, so it does not help although it is as documented.
    """

    clause: str
    title: str
    implementation: str
    works: tuple[str, ...]
    fails: tuple[str, ...]
    refused: bool = False

    @property
    def help(self) -> Help:
        """Return whether the remedy helps in that version."""
        if self.works and not self.refused:
            return Help.WORKS
        return Help.FAILS if self.works or self.fails else Help.UNTRIED

    @property
    def result(self) -> str:
        """The result of the remedy, as text: works, does not work, or not run."""
        if self.help is Help.UNTRIED:
            return "not run there"
        works = "raises, as expected," if self.refused else "works"
        parts = [
            f"{word} on {', '.join(where)}"
            for word, where in ((works, self.works), ("does not work", self.fails))
            if where
        ]
        return "; ".join(parts)


def remedy(results: Results, clause: str, implementation: str, target: TargetKey) -> Remedy:
    """Return where a remedy works under an implementation, or that only another one has it."""
    title = results.clauses[clause].title
    refusing = Remedy(clause, title, implementation, (), ())
    for name in dict.fromkeys((implementation, *results.columns(clause))):
        how = fared(results, clause, name, target)
        found = Remedy(clause, title, name, how.works, how.fails, how.refused)
        if found.help is not Help.UNTRIED and not found.refused:
            return found
        if refusing.help is Help.UNTRIED:
            refusing = found
    return refusing


@dataclass
class Remedies:
    """The mapping from issues and clauses to remedies, the same for every page."""

    results: Results
    _at: dict[tuple[str, str, TargetKey], Remedy] = field(default_factory=dict)

    def at(self, clause: str, implementation: str, target: TargetKey) -> Remedy:
        """Return where a remedy works under an implementation in one JAX."""
        place = clause, implementation, target
        if place not in self._at:
            self._at[place] = remedy(self.results, *place)
        return self._at[place]

    def edit(self, cause: Cause, implementation: str, target: TargetKey) -> str:
        """Return the known issue's edit, if its first remedy, which shows it, works in that JAX."""
        first = next(iter(self._known(cause.remedies[:1])), None)
        shown = first is not None and self.at(first, implementation, target).help is Help.WORKS
        return cause.edit if shown else ""

    def of_cause(self, cause: Cause) -> tuple[str, ...]:
        """Return the known issue's own remedies in order, then the fixes of programs that
        show it.
        """
        shown = self._shown.get(cause.cause, {})
        return self._known([*cause.remedies, *self.of_clauses(shown)])

    def of_clauses(self, clauses: Iterable[str]) -> tuple[str, ...]:
        """Return what fixes any of these programs."""
        return self._known(fix for one in clauses for fix in self._fixes.get(one, ()))

    def _known(self, named: Iterable[str]) -> tuple[str, ...]:
        return tuple(one for one in dict.fromkeys(named) if one in self.results.clauses)

    @cached_property
    def _shown(self) -> dict[str, dict[str, None]]:
        """Return, for each known issue, the clauses that show it in any cell or name it as a
        change.
        """
        found: dict[str, dict[str, None]] = {}
        for one in self.results.clauses.values():
            found.setdefault(one.cause, {})[one.clause] = None
        for key, outcome in self.results.outcomes.items():
            if named := cause_of(outcome):
                found.setdefault(named, {})[key.clause] = None
        return found

    @cached_property
    def _fixes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self.results.clauses.values():
            if one.fixes:
                found.setdefault(one.fixes, []).append(one.clause)
        return found
