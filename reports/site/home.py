"""The first page."""

from __future__ import annotations

from collections.abc import Iterator

from reports.reading.results import Results
from reports.site.page import Page


def pages(results: Results) -> Iterator[Page]:
    """The first page, in every site."""
    yield Page(
        "index.html",
        "home",
        results,
        "Moving off the old `jax.pmap`",
        "What changes between versions of JAX for code that uses pmap, measured on real clusters.",
    )
