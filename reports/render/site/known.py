"""The pages that list known issues, a grid for each use of pmap, and the safest versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.analysis.effects.pairs import Effects
from reports.render.site.issues import Grid, Risk, Where, grid, issues, risk, untested
from reports.render.site.names import Link, cause_path, implementation_words, version_path
from reports.render.site.page import Page
from reports.render.site.strips import jax_versions
from reports.render.site.uses import Use

PAGE = "causes.html"
SAFEST = "versions.html"


@dataclass(frozen=True, slots=True)
class KnownPage:
    """The known issues of one use, links to the other uses, and issues that no cell of it shows."""

    grid: Grid
    versions: tuple[str, ...]
    uses: tuple[tuple[str, str, bool], ...]
    others: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class SafeRow:
    """A version: what the use means in it, and its risk with one process and with several.

    `untested_one` and `untested_several` count the issues of other versions that were not tested.
    """

    jax: str
    href: str
    implementation: str
    one: Risk | None
    several: Risk | None
    best_one: bool
    best_several: bool
    untested_one: int
    untested_several: int


@dataclass(frozen=True, slots=True)
class SafestPage:
    """The versions of each use, the newest first."""

    tables: tuple[tuple[Use, tuple[SafeRow, ...]], ...]


def path_of(use: Use) -> str:
    """Return the address of the known issues of a use."""
    return PAGE if use is Use.PMAP else f"causes-{use.value}.html"


def pages(effects: Effects) -> Iterator[Page]:
    """Yield a page for each use, and the page of all versions."""
    results = effects.results
    if results.causes:
        versions = tuple(jax_versions(results))
        shown = {one.cause.cause for one in issues(effects) if one.one or one.several}
        rest = tuple(
            Link(one.title, cause_path(one.cause))
            for one in results.causes.values()
            if one.cause not in shown
        )
        for use in Use:
            yield Page(
                path_of(use),
                "causes",
                KnownPage(
                    grid(effects, use),
                    versions,
                    tuple((one.words, path_of(one), one is use) for one in Use),
                    rest if use is Use.PMAP else (),
                ),
                f"Known issues of {use.words}",
                "What each does in which version, the most severe and most usual first.",
            )
    if jax_versions(results):
        yield Page(
            SAFEST,
            "versions",
            SafestPage(tuple((use, safe_rows(effects, use)) for use in Use)),
            "Which version is safest",
            "Known issues that an ordinary program can meet, by version and severity.",
        )


def safe_rows(effects: Effects, use: Use) -> tuple[SafeRow, ...]:
    """Return every version in which a use was run, newest first, marking the least risk.

    A version in which fewer issues were tested than elsewhere is not compared.
    """
    versions = jax_versions(effects.results)
    some = []
    for jax in reversed(versions):
        where = Where(use.implementation(jax), jax)
        risks = risk(effects, where, "one"), risk(effects, where, "several")
        if any(risks):
            some.append((where, risks))
    places = [where for where, _ in some]
    rows = [
        (
            where,
            risks,
            tuple(len(untested(effects, where, places, n)) for n in ("one", "several")),
        )
        for where, risks in some
    ]
    best = [
        min(
            (one.score for _, found, left in rows if (one := found[n]) and not left[n]),
            default=None,
        )
        for n in (0, 1)
    ]
    return tuple(
        SafeRow(
            where.jax,
            version_path(where.jax),
            implementation_words(where.implementation),
            *found,
            *(
                one is not None and not left[n] and one.score == best[n]
                for n, one in enumerate(found)
            ),
            *left,
        )
        for where, found, left in rows
    )
