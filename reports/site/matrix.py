"""The full matrix: every clause, and every cell of it."""

from __future__ import annotations

from collections.abc import Iterator

from reports.reading.results import Results
from reports.site.page import Page
from reports.site.pages import index_page


def pages(results: Results) -> Iterator[Page]:
    """The matrix."""
    yield Page(
        "matrix.html",
        "matrix",
        index_page(results),
        "The full matrix",
        "Every clause under every implementation, in every version of JAX and on every topology.",
    )
