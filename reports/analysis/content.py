"""Results of a part of the catalogue, without what only the other tests need.

A run writes the texts of the whole catalogue into its file, so that a file of one clause would make
thousands of pages that say "not run".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from reports.analysis.comparing.changes import cause_of
from reports.analysis.comparing.entries import Entry, load_entries
from reports.analysis.effects.known import Known, load_known
from reports.store.results import Results


def with_content(results: Results) -> Results:
    """Return the results of the clauses that have any, and the claims and known issues of these.

    `absent` counts the clauses that are left out; of all others nothing is changed.
    """
    there = {key.clause for key in results.outcomes} | {key.clause for key in results.timings}
    there |= {one.clause for one in results.growths}
    clauses = {id: one for id, one in results.clauses.items() if id in there}
    if len(clauses) == len(results.clauses):
        return results
    causes, claims = set(_causes(results, clauses)), set(_claims(results, clauses))
    return replace(
        results,
        clauses=clauses,
        claims={slug: one for slug, one in results.claims.items() if slug in claims},
        causes={slug: one for slug, one in results.causes.items() if slug in causes},
        grid={id: results.grid[id] for id in clauses},
        absent=len(results.clauses) - len(clauses),
    )


def _causes(results: Results, clauses: Collection[str]) -> Iterator[str]:
    """Yield the known issues that clauses, their cells or an explanation of a change may name,
    each with the issue of which it is a part.
    """
    named = {results.clauses[id].cause for id in clauses}
    named |= {cause_of(outcome) for outcome in results.outcomes.values()}
    named |= {one.cause for one in _entries(clauses)}
    yield from named
    yield from (one.part_of for slug, one in results.causes.items() if slug in named)


def _claims(results: Results, clauses: Collection[str]) -> Iterator[str]:
    """Yield the claims of clauses, and those that may explain a change of their cells."""
    yield from (results.clauses[id].claim for id in clauses)
    yield from (one.claim for one in _entries(clauses))


def _entries(clauses: Collection[str]) -> Iterator[Entry | Known]:
    """Yield what explains changes of these clauses."""
    some: tuple[Entry | Known, ...] = (*load_entries(), *load_known())
    for one in some:
        if any(fnmatchcase(id, pattern) for id in clauses for pattern in one.clause):
            yield one
