"""What a known issue is due to: JAX, the platform, or what the tested documents say."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from conformance.model.records import Cause
from conformance.model.verdicts import Verdict
from reports.store.outcomes import CellKey
from reports.store.results import Results


class Origin(StrEnum):
    """What a known issue is due to; the value is what pages say."""

    JAX = "JAX"
    PLATFORM = "the platform"
    UNDOCUMENTED = "JAX; the tested documents do not mention it"
    DOCUMENTED = "JAX, as documented"
    DOCUMENTATION = "the documentation, which differs from what JAX does"


_OF_KIND = {"implementation": Origin.JAX, "platform": Origin.PLATFORM}


def origin(results: Results, cause: Cause, cells: Iterable[CellKey]) -> Origin:
    """Return what an issue is due to: a document only if a test of what that says fails by it."""
    if cause.cause_kind in _OF_KIND:
        return _OF_KIND[cause.cause_kind]
    claims = {key: results.claims.get(results.clauses[key.clause].claim) for key in cells}
    stated = [key for key, one in claims.items() if one is not None and not one.silent]
    if claims and not stated:
        return Origin.UNDOCUMENTED
    if claims and all(results.outcome(key).verdict is Verdict.CONFORMS for key in stated):
        return Origin.DOCUMENTED
    return Origin.DOCUMENTATION
