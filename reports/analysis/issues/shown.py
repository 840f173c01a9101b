"""Which cells show which known issue."""

from __future__ import annotations

import re
from functools import lru_cache

from conformance.model.verdicts import Verdict
from reports.store.order import LEGACY, version_order
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results

# How an expectation begins that is another one from a release on.
_BEFORE = re.compile(r"before (\d[\d.]*): ")


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def shown_by(results: Results) -> dict[str, list[CellKey]]:
    """Return the cells that show each known issue."""
    shown: dict[str, list[CellKey]] = {}
    for key, outcome in results.outcomes.items():
        for slug in _named(results, key, outcome):
            shown.setdefault(slug, []).append(key)
    return shown


def _named(results: Results, key: CellKey, outcome: Outcome) -> set[str]:
    """Return the known issues that a cell shows: its entry's or, if that conforms, its clause's.

    The clause's is about a change: it does not count if the same is expected as of legacy pmap, and
    what returns although another implementation raises counts only if the program shows it there.
    Where something else is expected from a release on, that release brought it.
    """
    if outcome.verdict is Verdict.CONFORMS:
        clause = results.clauses[key.clause]
        changes = _BEFORE.match(clause.expected.get(key.implementation, ""))
        if changes and version_order(key.target.jax or "") < version_order(changes[1]):
            return set()
        as_legacy = clause.expected.get(key.implementation) == clause.expected.get(LEGACY)
        raises = "raises" in clause.expected.get(key.implementation, "")
        known = results.causes.get(clause.cause)
        if as_legacy or known is None or not (raises or known.shown_of(key.implementation)):
            return set()
        return {known.cause}
    entries = [run.cell.deviation for run in outcome.runs]
    return {entry.cause for entry in entries if entry is not None} - {""}
