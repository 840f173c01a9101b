"""The elements of a site: pages rendered by a template, and files.

Page modules yield them; `build` renders and writes. Page modules share nothing else, so that each
can be read, tested and removed by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from reports.analysis.effects.pairs import Effects

MOST_BYTES = 300_000  # of a page: what a phone opens at once


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its path, its template, and the template's `page`.

    A view that is expensive computes in its properties, which are read when the page is rendered,
    possibly in another process. `title` and `description` may contain `code`. Pages of one `batch`
    share work, and one process renders all of them.
    """

    path: str  # relative to the site, with "/" between folders
    template: str  # templates/<template>.html.j2
    view: Any
    title: str
    description: str
    batch: str = ""

    @property
    def root(self) -> str:
        """The relative path to the site's top."""
        return up(self.path)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that is not a page: data, a script, a feed; its content is made when it is written."""

    path: str
    make: Callable[[], str]
    batch: str = ""

    @property
    def text(self) -> str:
        """The content, made at each access."""
        return self.make()


Pages = Callable[[Effects], Iterator[Page | Asset]]


def template_text(name: str) -> str:
    """Return the text of a file beside the templates, such as a script."""
    file = resources.files("reports.render.site").joinpath(f"templates/{name}")
    return file.read_text(encoding="utf-8")


def up(path: str) -> str:
    """Return the relative path from the folder of `path` to the site's top: "" or "../"."""
    return "../" * path.count("/")
