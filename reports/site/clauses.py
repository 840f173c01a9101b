"""A page per clause: the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from reports.reading.results import Results
from reports.site.names import clause_path
from reports.site.page import Page
from reports.site.pages import clause_page


def pages(results: Results) -> Iterator[Page]:
    """The page of each clause."""
    for clause in results.clauses.values():
        yield Page(
            clause_path(clause.clause),
            "clause",
            clause_page(results, clause),
            clause.title,
            f"What JAX does: {clause.title}",
        )
