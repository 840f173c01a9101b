"""What a site is made of: pages that a template lays out, and files that stand as they are.

A page module yields them; `build` renders and writes. Nothing else is shared between page modules,
so that each can be read, tested and thrown away by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reports.effects.pairs import Effects


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where it lies, the template that lays it out, and what that is given as `page`.

    A view that costs much to make computes in its properties: they are read when the page is
    rendered, which may be in another process. `title` and `description` may hold `code`.
    """

    path: str  # relative to the site, with "/" between folders
    template: str  # templates/<template>.html.j2
    view: Any
    title: str
    description: str

    @property
    def root(self) -> str:
        """The way up to the site's top, as it stands before a relative address."""
        return up(self.path)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that is no page: data, a script, a feed; made when it is written, as views are."""

    path: str
    make: Callable[[], str]

    @property
    def text(self) -> str:
        return self.make()


Pages = Callable[[Effects], Iterator[Page | Asset]]


def up(path: str) -> str:
    """The relative way from the folder of `path` to the site's top: "" or "../"."""
    return "../" * path.count("/")
