"""Names of JAX that went away: a table, and a page for each, found by the error that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.public_names import (
    ARGUMENT,
    MODULE,
    NAME,
    OPTION,
    Name,
    Names,
    as_text,
    load_names,
)
from reports.render.site.names import Link, cause_link, safe_name
from reports.render.site.page import Asset, Page
from reports.render.site.strips import jax_versions
from reports.store.results import Results

PAGE = "removed.html"
DATA = "data/names.json"


@dataclass(frozen=True, slots=True)
class Row:
    """A name in a table, and where it is described: on its page, or in this row."""

    name: Name
    has_page: bool
    since: str = ""

    @property
    def href(self) -> str:
        """The address of the name's page, or of its row."""
        return page_of(self.name) if self.has_page else row_of(self.name)

    @property
    def anchor(self) -> str:
        """The fragment of the row's address."""
        return safe_name(self.name.text)


@dataclass(frozen=True, slots=True)
class Group:
    """The names of one module."""

    module: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class RemovedPage:
    """All names that are gone: those of the subject, and the others by module; what warns now."""

    oldest: str
    newest: str
    subject: tuple[Row, ...]
    others: tuple[Group, ...]
    count: int
    warns: tuple[Row, ...]
    data: str


@dataclass(frozen=True, slots=True)
class NamePage:
    """Everything about one name; `rewrites` are edits of code that uses it."""

    name: Name
    rewrites: tuple[Rewrite, ...]
    errors: tuple[str, ...]
    program: str
    instead: str
    last: str
    oldest: str
    newest: str
    issues: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """The names that an upgrade removes: those of the subject, and how many others by module."""

    subject: tuple[Row, ...]
    others: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """The number of other names."""
        return sum(count for _, count in self.others)


@lru_cache(maxsize=1)  # the table, the search and each name's page ask the same of one site
def with_page(results: Results) -> frozenset[Name]:
    """Return the names with a page: those that go away in the results' releases or between them,
    without those of the languages for kernels.
    """
    versions = jax_versions(results)
    if not versions:
        return frozenset()
    gone = load_names().gone_in(versions[0], versions[-1])
    return frozenset(one for one in gone if not one.is_of_kernels)


def name_path(results: Results, name: Name) -> str:
    """The page of a name; the row of one that has none."""
    return page_of(name) if name in with_page(results) else row_of(name)


def page_of(name: Name) -> str:
    """The page of a name."""
    return f"removed/{safe_name(name.text)}.html"


def row_of(name: Name) -> str:
    """The row of a name in the table of all."""
    return f"{PAGE}#{safe_name(name.text)}"


def removed_between(old: str, new: str) -> Removed:
    """Return what an upgrade from one JAX to another removes."""
    gone = load_names().gone_between(old, new)
    others = (one for one in gone if not one.is_of_subject)
    return Removed(
        tuple(Row(one, has_page=True) for one in gone if one.is_of_subject),
        tuple((module, len(list(some))) for module, some in _by_module(others)),
    )


def errors(name: Name) -> tuple[str, ...]:
    """Return what a program that uses a name ends with, the last line of its traceback."""
    if name.kind != NAME or not name.error.startswith("AttributeError"):
        return (name.error,) if name.error else ()
    return (name.error, f"ImportError: cannot import name '{name.attribute}' from '{name.module}'")


def program(name: Name) -> str:
    """The shortest program that uses a name."""
    used = {
        MODULE: "",
        OPTION: f'jax.config.update("{name.name}", ...)',
        ARGUMENT: f"{name.owner}(..., {name.name}=...)",
    }.get(name.kind, name.text)
    return f"import {name.name if name.kind == MODULE else name.module or 'jax'}\n{used}".strip()


def instead(name: Name) -> str:
    """Return the import of the same object by a name that still exists; empty if there is none."""
    module, _, attribute = name.instead.rpartition(".")
    return f"from {module} import {attribute}" if module else ""


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """The table, and a page per name; nothing where the results have no releases to upgrade."""
    names = load_names()
    if not names.releases:
        return
    yield Page(
        PAGE,
        "removed",
        _table(names, with_page(effects.results)),
        "My import fails: names that JAX removed",
        f"Public names of JAX that {names.releases[-1]} no longer has: since when, and what JAX "
        f"says of a replacement. The oldest release looked at is {names.releases[0]}.",
    )
    yield Asset(DATA, lambda: as_text(names))
    issues = issues_by_name(effects.results)
    for one in names.names:
        if one not in with_page(effects.results):
            continue
        yield Page(
            page_of(one),
            "name",
            NamePage(
                one,
                tuple(_rewrites(effects.results, one)),
                errors(one),
                program(one),
                instead(one),
                names.before(one.gone),
                names.releases[0],
                names.releases[-1],
                issues.get(one.text, ()),
            ),
            f"`{one.text}` is removed in JAX {names.gone_since(one)}",
            (errors(one) or (f"{one.text} is gone.",))[0],
        )


def _rewrites(results: Results, name: Name) -> Iterator[Rewrite]:
    """Yield the edits of the known issues with a name whose code before it has the name."""
    tagged = {one.cause for one in results.causes.values() if name.text in one.tags}
    for edit in rewrites().edits:
        if not tagged.isdisjoint(edit.causes) and name.attribute in edit.before:
            yield edit


def issues_by_name(results: Results) -> Mapping[str, tuple[Link, ...]]:
    """The known issues that have a name among their tags."""
    found: dict[str, list[Link]] = {}
    for one in results.causes.values():
        for tag in one.tags:
            found.setdefault(tag, []).append(cause_link(results, one.cause))
    return {name: tuple(some) for name, some in found.items()}


def _table(names: Names, paged: frozenset[Name]) -> RemovedPage:
    def rows(some: Iterable[Name]) -> tuple[Row, ...]:
        return tuple(Row(one, one in paged, names.gone_since(one)) for one in some)

    return RemovedPage(
        oldest=names.releases[0],
        newest=names.releases[-1],
        subject=rows(one for one in names.gone if one.is_of_subject),
        others=tuple(
            Group(module, rows(some))
            for module, some in _by_module([one for one in names.gone if not one.is_of_subject])
        ),
        count=len(names.gone),
        warns=rows(one for one in names.names if not one.gone),
        data=DATA,
    )


def _by_module(names: Iterator[Name] | Sequence[Name]) -> Iterator[tuple[str, Iterator[Name]]]:
    """The names by the module that has them, or has their function."""
    return groupby(sorted(names, key=_module), key=_module)


def _module(name: Name) -> str:
    return name.module or "jax.config"
