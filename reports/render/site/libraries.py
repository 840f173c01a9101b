"""Libraries beside releases of JAX: which version is installed, what its import and uses do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.analysis.effects.pairs import Effects
from reports.analysis.libraries import Pair, as_text, load_libraries
from reports.render.site.names import safe_name
from reports.render.site.page import Asset, Page

PAGE = "libraries.html"
DATA = "data/libraries.json"


@dataclass(frozen=True, slots=True)
class Table:
    """What one library does, a row per JAX and version; `uses` are the columns."""

    library: str
    uses: tuple[str, ...]
    rows: tuple[Pair, ...]

    @property
    def anchor(self) -> str:
        return safe_name(self.library)


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
        LibrariesPage(tables(pairs), DATA),
        "Libraries and JAX: which versions work together",
        "flax, optax, orbax-checkpoint, equinox, chex and dm-haiku beside each release of JAX: "
        "the version, its import, and its functions that use pmap.",
    )


def tables(pairs: Sequence[Pair]) -> tuple[Table, ...]:
    """A table per library, the newest JAX first."""
    found = []
    for library, some in groupby(pairs, key=lambda one: one.library):
        rows = tuple(some)[::-1]
        uses = tuple(dict.fromkeys(name for one in rows for name in one.uses))
        found.append(Table(library, uses, rows))
    return tuple(found)
