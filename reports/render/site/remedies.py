"""Remedies, and whether they work where they were run.

A remedy is a clause. It works if its cells are as expected and the expectation is not an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.model.records import Target
from conformance.model.verdicts import Verdict
from reports.analysis.effects.remedies import Fared, Help, fared
from reports.render.site.marks import Mark
from reports.render.site.names import Link, clause_path, implementation_words
from reports.store.order import LEGACY, version_order
from reports.store.results import Results

_WORDS = {
    Mark.RIGHT: "works",
    Mark.PARTLY: "works in part",
    Mark.WRONG: "does not work",
    Mark.NOT_RUN: "not run",
}
_REFUSED = "raises, as expected"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One remedy: its page, what it does, and its mark per implementation, in words."""

    link: Link
    at: tuple[tuple[str, Mark, str], ...]

    @property
    def help(self) -> Help:
        """Return whether it helps under any implementation."""
        words = {word for _, _, word in self.at} - {_WORDS[Mark.NOT_RUN]}
        if words & {_WORDS[Mark.RIGHT], _WORDS[Mark.PARTLY]}:
            return Help.WORKS
        return Help.FAILS if words else Help.UNTRIED


@dataclass(frozen=True, slots=True)
class Remedies:
    """Remedies and their outcomes in one JAX, `label`."""

    label: str
    some: tuple[Remedy, ...]


def newest(results: Results) -> Target | None:
    """Return the newest JAX of the results with any cell; None if there is none."""
    ran = {k.target for k, o in results.outcomes.items() if o.verdict is not Verdict.NOT_RUN}
    there = [t for t in results.targets if t.key in ran]
    return max(there, key=lambda t: version_order(t.jax or ""), default=None)


def remedies(results: Results, clauses: Iterable[str], target: Target | None) -> Remedies:
    """Return the remedies `clauses`, each once, in order but with working ones first."""
    known = [id for id in dict.fromkeys(clauses) if id in results.clauses]
    found = [_remedy(results, id, target) for id in known]
    return Remedies(
        results.labels[target.key] if target else "",
        tuple(sorted(found, key=lambda one: list(Help).index(one.help))),
    )


def _remedy(results: Results, id: str, target: Target | None) -> Remedy:
    clause = results.clauses[id]
    found: list[tuple[str, Mark, str]] = []
    for implementation in results.columns(id) if target else ():
        if implementation == LEGACY or target is None:
            continue
        how = fared(results, id, implementation, target.key)
        mark = _mark(how)
        if mark in _WORDS:
            word = _REFUSED if mark is Mark.RIGHT and how.refused else _WORDS[mark]
            found.append((implementation_words(implementation), mark, word))
    return Remedy(Link(clause.title, clause_path(id)), tuple(found))


def _mark(how: Fared) -> Mark:
    if how.works and how.fails:
        return Mark.PARTLY
    if how.works or how.fails:
        return Mark.RIGHT if how.works else Mark.WRONG
    return Mark.NOT_RUN if how.not_run else Mark.NONE
