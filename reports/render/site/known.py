"""The pages that list known issues, a grid for each use of pmap, and the safest versions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from reports.analysis.effects.pairs import Effects
from reports.analysis.issues.derive import issues
from reports.analysis.issues.places import KINDS, ONE, Where, baseline, existing, jax_versions
from reports.analysis.issues.risk import Risk, RiskKind, risk, safest
from reports.render.site.entries import side_words
from reports.render.site.issues import FATAL, Grid, grid
from reports.render.site.names import Link, cause_path, implementation_words, version_path
from reports.render.site.page import Page
from reports.render.site.uses import Use
from reports.render.site.versions import ANY_FATAL, risk_href
from reports.store.order import (
    DEFAULT_SINCE,
    LEGACY_REMOVED,
    NEW_BY_DEFAULT,
    REMOVED_IN,
    version_order,
)

PAGE = "causes.html"
SAFEST = "versions.html"


@dataclass(frozen=True, slots=True)
class KnownPage:
    """The known issues of one use, links to the other uses, and issues without an effect.

    `others` are lists of these, each with a heading and a sentence; `libraries` are the issues that
    follow a library's version, each with its name.
    """

    grid: Grid
    versions: tuple[str, ...]
    uses: tuple[tuple[str, str, bool], ...]
    others: tuple[tuple[str, str, tuple[Link, ...]], ...]
    libraries: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """The risk with one process or several: a count and its list for each severity."""

    words: str
    counts: tuple[tuple[int, str], ...]
    fatal: tuple[int, str]
    best: bool
    untested: int


@dataclass(frozen=True, slots=True)
class SafeRow:
    """A version: what the use means in it, and its risk; None where nothing was run."""

    jax: str
    href: str
    implementation: str
    one: Counted | None
    several: Counted | None


@dataclass(frozen=True, slots=True)
class SafeTable:
    """The versions of one use, the newest first, advice, and the issues that crash or hang."""

    use: Use
    advice: tuple[str, ...]
    rows: tuple[SafeRow, ...]
    fatal: Grid


@dataclass(frozen=True, slots=True)
class SafestPage:
    """A table for each use; `baseline` is what the errors of others are compared with.

    `patches` are releases of four numbers, each with the release that it patches.
    """

    tables: tuple[SafeTable, ...]
    versions: tuple[str, ...]
    baseline: str
    patches: tuple[tuple[str, str], ...]
    severities: tuple[tuple[str, str], ...]


def path_of(use: Use) -> str:
    """Return the address of the known issues of a use."""
    return PAGE if use is Use.PMAP else f"causes-{use.value}.html"


def pages(effects: Effects) -> Iterator[Page]:
    """Yield a page for each use, and the page of all versions."""
    results = effects.results
    if results.causes or jax_versions(results):
        versions = tuple(jax_versions(results))
        of_libraries = tuple(
            Link(one.cause.title, cause_path(one.cause.cause))
            for one in issues(effects)
            if one.library
        )
        for use in Use:
            yield Page(
                path_of(use),
                "causes",
                KnownPage(
                    grid(effects, use),
                    versions,
                    tuple((one.words, path_of(one), one is use) for one in Use),
                    _without_effect(effects) if use is Use.PMAP else (),
                    of_libraries,
                ),
                f"Known issues of {use.words}",
                "The effect of each issue in each version of JAX. They are sorted by "
                "likelihood and severity: an error in ordinary programs stands before a crash in "
                "rare ones.",
            )
    if jax_versions(results):
        against = baseline(results)
        yield Page(
            SAFEST,
            "versions",
            SafestPage(
                tuple(safe_table(effects, use) for use in Use),
                tuple(jax_versions(results)),
                "" if against is None else side_words(against),
                tuple(
                    (jax, jax.rpartition(".")[0])
                    for jax in jax_versions(results)
                    if jax.count(".") == 3
                ),
                tuple((one.heading, one.words) for one in RiskKind),
            ),
            "Which version is safest",
            "The number of known issues that affect ordinary programs, by version and severity.",
        )


def _without_effect(effects: Effects) -> tuple[tuple[str, str, tuple[Link, ...]], ...]:
    """Return the known issues that no table has: by whether a test fails because of them."""
    worst = {one.cause.cause: one.worst for one in issues(effects)}
    rest = [one for one in effects.results.causes.values() if worst.get(one.cause) is None]
    lists = (
        (
            "issues without a row in this table",
            "Tests fail because of these issues, but a comparison with legacy pmap or another "
            "version shows no effect on programs.",
            [one for one in rest if one.cause in worst],
        ),
        (
            "behaviours that the tests expect",
            "No test fails because of these behaviours, because the tests expect them. They can "
            "still affect a program.",
            [one for one in rest if one.cause not in worst],
        ),
    )
    return tuple(
        (words, says, tuple(Link(one.title, cause_path(one.cause)) for one in some))
        for words, says, some in lists
    )


@lru_cache(maxsize=len(Use))
def safe_table(effects: Effects, use: Use) -> SafeTable:
    """Return every version in which a use was run, newest first, and which is safest."""
    some = [
        Where(use.implementation(jax), jax)
        for jax in reversed(jax_versions(effects.results))
        if Where(use.implementation(jax), jax) in existing(effects.results)
    ]
    risks = {
        kind: {where.jax: risk(effects, where, kind, some) for where in some} for kind in KINDS
    }
    best = {kind: safest(_advised(found)) for kind, found in risks.items()}
    core = frozenset(one.jax or "" for one in effects.results.targets if one.core is not None)
    return SafeTable(
        use,
        tuple(filter(None, (_advice(use, kind, risks[kind], core) for kind in KINDS))),
        tuple(
            SafeRow(
                where.jax,
                version_path(where.jax),
                implementation_words(where.implementation),
                *(_counted(where, kind, risks[kind][where.jax], best[kind]) for kind in KINDS),
            )
            for where in some
            if any(risks[kind][where.jax] for kind in KINDS)
        ),
        grid(effects, use, only=FATAL),
    )


def _counted(where: Where, kind: str, found: Risk | None, best: Sequence[str]) -> Counted | None:
    if found is None:
        return None
    return Counted(
        "one process" if kind == ONE else "several processes",
        tuple(
            (len(some), risk_href(where, kind, severity.value)) for severity, some in found.counted
        ),
        (len(found.fatal), risk_href(where, kind, ANY_FATAL)),
        where.jax in best,
        len(found.untested),
    )


def _advised(risks: Mapping[str, Risk | None]) -> list[tuple[str, Risk | None]]:
    """Return the versions with the new pmap; all of them where there is none."""
    newer = [(jax, one) for jax, one in risks.items() if version_order(jax) >= NEW_BY_DEFAULT]
    return newer or list(risks.items())


def _advice(use: Use, kind: str, risks: Mapping[str, Risk | None], core: Collection[str]) -> str:
    """Return which version is safest, of all, of those with the new pmap and of those with no
    other, in sentences. `core` are the versions of which the core tests alone were run.
    """
    words = "One process" if kind == ONE else "Several processes"
    some = _advised(risks)
    best = safest(some)
    if not best:
        return ""
    newer = version_order(best[0]) >= NEW_BY_DEFAULT
    # The option is needed where new pmap is the default, and gone with legacy pmap.
    until = f"to {some[0][0]}" if use is Use.LEGACY else "and later"
    versions = f" of JAX {DEFAULT_SINCE} {until}" if newer else ""
    line = f"{words}: the safest version{versions} is {_and_issues(best, some, core)}"
    alone = [(jax, one) for jax, one in some if version_order(jax) >= LEGACY_REMOVED]
    if newer and best[0] not in dict(alone) and (last := safest(alone)):
        line += f" Of JAX {REMOVED_IN} and later, it is {_and_issues(last, alone, core)}"
    return line


def _and_issues(
    best: Sequence[str], some: Sequence[tuple[str, Risk | None]], core: Collection[str]
) -> str:
    newest, *others = (f"{jax} (core tests only)" if jax in core else jax for jax in best)
    least = dict(some)[best[0]]
    assert least is not None
    also = f", and equally safe is {' and '.join(others)}" if others else ""
    return f"{newest}{also}. Known issues: {least.words}."
