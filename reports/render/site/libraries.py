"""Libraries beside releases of JAX: which version is installed, what its import and uses do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformance.model.records import Cause
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.libraries import Pair, as_text, load_libraries
from reports.render.site.names import Link, cause_path, safe_name
from reports.render.site.page import Asset, Page
from reports.store.order import version_order

PAGE = "libraries.html"
DATA = "data/libraries.json"


@dataclass(frozen=True, slots=True)
class Table:
    """What one library does, a row per JAX and version; `uses` are the columns.

    `changes` is what its versions change, with the pages of the known issues;
    `naming` are other known issues that name one of its functions.
    """

    library: str
    uses: tuple[str, ...]
    rows: tuple[Pair, ...]
    changes: tuple[tuple[Rewrite, str], ...] = ()
    naming: tuple[Link, ...] = ()

    @property
    def anchor(self) -> str:
        """The fragment of its address on the page."""
        return safe_name(self.library)

    def first_with(self, change: Rewrite) -> str:
        """Return the oldest JAX whose newest version has a change; empty if none has."""
        since = version_order(change.since)
        has = (one.jax for one in self.rows if version_order(one.version) >= since)
        return min(has, key=version_order, default="")


@dataclass(frozen=True, slots=True)
class LibrariesPage:
    """All tables, and the releases that they are about."""

    tables: tuple[Table, ...]
    data: str


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """Yield the page and its data; nothing if no library was examined."""
    pairs = load_libraries()
    if not pairs:
        return
    yield Asset(DATA, lambda: as_text(pairs))
    yield Page(
        PAGE,
        "libraries",
        LibrariesPage(tables(pairs, effects.results.causes), DATA),
        "Libraries and JAX: which versions work together",
        "flax, optax, orbax-checkpoint, equinox, chex and dm-haiku beside each release of JAX: "
        "the version, its import, and its functions that use pmap.",
    )


def tables(pairs: Sequence[Pair], known: Mapping[str, Cause]) -> tuple[Table, ...]:
    """A table per library, the newest JAX first; `known` are the issues that have pages."""
    found = []
    for library, some in groupby(pairs, key=lambda one: one.library):
        rows = tuple(some)[::-1]
        uses = tuple(dict.fromkeys(name for one in rows for name in one.uses))
        changes = (one for one in rewrites().edits if one.library == library)
        linked = ((one, _issue(known, one)) for one in changes)
        found.append(Table(library, uses, rows, tuple(linked), _naming(known, library, uses)))
    return tuple(found)


def _naming(known: Mapping[str, Cause], library: str, uses: Sequence[str]) -> tuple[Link, ...]:
    """Return the known issues of JAX that name a library's function."""
    return tuple(
        Link(one.title, cause_path(slug))
        for slug, one in known.items()
        if not {*uses}.isdisjoint(one.tags) and rewrites().library_of(slug) != library
    )


def _issue(known: Collection[str], change: Rewrite) -> str:
    """Return the page of a change's known issue; empty where these results do not have it."""
    return next((cause_path(slug) for slug in change.causes if slug in known), "")
