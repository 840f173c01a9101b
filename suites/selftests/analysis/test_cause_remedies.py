"""The causes' remedies against the published matrix: each is a way out where it is needed.

A remedy is something that a user does in place of what fails, and that then works: not a check of
the failure, nor a clause that expects an error.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import reports
from conformance.catalogue.causes import load_causes
from conformance.model.records import TargetKey
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.remedies import Help, remedy
from reports.render.site.remedies import newest
from reports.store.order import LEGACY
from reports.store.results import Results, load

pytestmark = pytest.mark.long

PUBLISHED = Path(reports.__file__).parent / "published" / "matrix.jsonl.xz"


@functools.cache
def published() -> tuple[Results, dict[str, dict[TargetKey, set[str]]]]:
    """The published results, and where each cause shows: the implementations by target."""
    results = load([PUBLISHED])
    shown: dict[str, dict[TargetKey, set[str]]] = {}
    for key, outcome in results.outcomes.items():
        named = {cause_of(outcome)}
        if outcome.verdict is Verdict.CONFORMS:
            named.add(results.clauses[key.clause].cause)
        for slug in named - {""}:
            shown.setdefault(slug, {}).setdefault(key.target, set()).add(key.implementation)
    return results, shown


WANTED = [(slug, clause) for slug, one in load_causes().items() for clause in one.remedies]


@pytest.mark.parametrize(("slug", "clause"), WANTED)
def test_a_remedy_works_where_its_cause_shows(slug: str, clause: str) -> None:
    results, shown = published()
    last = newest(results)
    assert last is not None
    places = shown.get(slug, {})
    # A cause that only the comparison of implementations names has no cells of its own.
    tried = [
        (implementation, target)
        for target in ([*places] or [last.key])
        for implementation in places.get(target, {LEGACY, "new_pmap", "shard_map"})
    ]
    found = {remedy(results, clause, *where).help for where in tried}
    assert Help.WORKS in found, f"{clause} is no way out of {slug} in any JAX where that shows"
