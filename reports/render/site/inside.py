"""The page of pmap inside jit, vmap, derivatives, loops and jax.checkpoint: whether it works."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.model.verdicts import Verdict
from reports.analysis.effects.digest import RAISED
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.gradients import taken
from reports.analysis.issues.derive import issue_of
from reports.analysis.issues.places import KINDS, ONE, SEVERAL, Where, jax_versions
from reports.render.site.names import clause_path, implementation_words
from reports.render.site.page import Page
from reports.render.site.text import plain
from reports.store.order import LEGACY, NEW
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results

PAGE = "inside.html"
TITLE = "Does pmap work inside jit, vmap, grad, scan or jax.checkpoint?"
_Outcomes = Mapping[str, Sequence[tuple[CellKey, Outcome]]]

WORKS, NOT_RUN, REMOVED = "works", "not run", "removed"

# What is around the pmap, and the clauses that test it with one process and with several. A pmax or
# pmin has no gradient, whatever is around it.
TRANSFORMS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "jax.jit",
        {
            ONE: r"silences\.of-map\.jit(-out-none|-twice|-vmap)?",
            SEVERAL: r"multi_controller\.map\.jit\..*|indexing\.under-jit\.psum",
        },
    ),
    (
        "jax.vmap",
        {ONE: r"silences\.of-map\.vmap-.*", SEVERAL: r"multi_controller\.map\.vmap\..*"},
    ),
    (
        "jax.grad and other derivatives",
        {
            ONE: r"silences\.of-map\.(jacrev|jacfwd|hessian|jvp|linearize|grad-checkpoint)"
            r"|rewriting\.gradients\.outside\.own-(added-up|first)\.(rows|unmapped)",
            SEVERAL: r"multi_controller\.map\.grad(-of-remat)?\.(?!pmax|pmin).*",
        },
    ),
    (
        "jax.lax.scan and other control flow",
        {
            ONE: r"silences\.of-map\.(scan(-out-none)?|while|fori|map|cond(-not-taken)?)",
            SEVERAL: r"multi_controller\.map\.scan\..*",
        },
    ),
    (
        "jax.checkpoint",
        {ONE: r"silences\.of-map\.checkpoint", SEVERAL: r"multi_controller\.map\.remat\..*"},
    ),
)
# The known issues that lead to the page.
CAUSES = frozenset(
    (
        "transformed-map-spans-one-process",
        "transformed-map-fails-in-several-processes",
        "psum-under-jit-spans-one-process",
        "no-pmap-under-jit-in-several-processes",
        "by-itself-or-under-jit",
        "gradient-stays-in-the-process",
        "no-gradient-through-several-processes",
        "no-gradient-through-legacy-pmap",
        "nested-pmap-refused",
        "nested-pmap-in-several-processes",
    )
)


@dataclass(frozen=True, slots=True)
class InsideCell:
    """What the tests of a transform show in a version; `part`: some of them work."""

    jax: str
    says: str
    css: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class InsideRow:
    """A transform under one implementation; a cell per version."""

    transform: str
    implementation: str
    href: str
    cells: tuple[InsideCell, ...]


@dataclass(frozen=True, slots=True)
class InsideTable:
    """The rows of one process or of several, and what the newest version does, in a sentence."""

    kind: str
    answer: str
    rows: tuple[InsideRow, ...]


@dataclass(frozen=True, slots=True)
class InsidePage:
    """The tables; `causes` are the known issues that have a page, `gradients` if their page is."""

    versions: tuple[str, ...]
    tables: tuple[InsideTable, ...]
    causes: frozenset[str] = frozenset()
    gradients: bool = False


def there(results: Results) -> bool:
    """Return whether any of its clauses is in the results."""
    return any(_clauses(results, by[kind]) for _, by in TRANSFORMS for kind in KINDS)


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page, where one of its clauses is there."""
    if there(effects.results):
        yield Page(
            PAGE,
            "inside",
            inside_page(effects),
            TITLE.replace("jax.checkpoint", "`jax.checkpoint`"),
            "With one process and with several, by version: whether a pmapped function that is "
            "called inside another transformation gives the same values as outside of it.",
        )


def inside_page(effects: Effects) -> InsidePage:
    """Return both tables."""
    versions = jax_versions(effects.results)
    words = {ONE: "One process", SEVERAL: "Several processes"}
    outcomes, gone, tables = _outcomes(effects.results), _removed(effects.results), []
    for kind in KINDS:
        rows = tuple(_rows(effects, outcomes, gone, kind, versions))
        if rows:
            tables.append(InsideTable(words[kind], _answer(rows), rows))
    known = frozenset(effects.results.causes)
    return InsidePage(tuple(versions), tuple(tables), known, taken(effects.results))


def _clauses(results: Results, pattern: str) -> tuple[str, ...]:
    return tuple(id for id in results.clauses if re.fullmatch(pattern, id))


def _rows(
    effects: Effects,
    outcomes: _Outcomes,
    gone: Collection[Where],
    kind: str,
    versions: Sequence[str],
) -> Iterator[InsideRow]:
    for transform, by in TRANSFORMS:
        clauses = _clauses(effects.results, by[kind])
        found: dict[tuple[str, str], list[tuple[CellKey, Outcome]]] = {}
        for key, outcome in (one for clause in clauses for one in outcomes[clause]):
            if key.topology.startswith("1x") == (kind == ONE):
                found.setdefault((key.implementation, key.target.jax or ""), []).append(
                    (key, outcome)
                )
        for name in (LEGACY, NEW):
            cells = tuple(
                InsideCell(jax, REMOVED, "g-none")
                if Where(name, jax) in gone
                else _cell(effects, Where(name, jax), kind, found.get((name, jax), ()))
                for jax in versions
            )
            if any(one.says not in (NOT_RUN, REMOVED) for one in cells):
                yield InsideRow(transform, name, clause_path(clauses[0]), cells)


def _removed(results: Results) -> frozenset[Where]:
    """Return the implementations that a version no longer has, of whichever test is said so."""
    return frozenset(
        Where(key.implementation, key.target.jax or "")
        for key, outcome in results.outcomes.items()
        if outcome.verdict is Verdict.REMOVED
    )


def _outcomes(results: Results) -> _Outcomes:
    """Return the outcomes of all clauses of the page, by clause."""
    patterns = [by[kind] for _, by in TRANSFORMS for kind in KINDS]
    found: dict[str, list[tuple[CellKey, Outcome]]] = {
        id: [] for pattern in patterns for id in _clauses(results, pattern)
    }
    for key, outcome in results.outcomes.items():
        if key.clause in found:
            found[key.clause].append((key, outcome))
    return found


def _cell(
    effects: Effects, where: Where, kind: str, some: Iterable[tuple[CellKey, Outcome]]
) -> InsideCell:
    """Return the most severe effect of the tests in a version."""
    ran = [(key, one) for key, one in some if one.verdict in RAN]
    if not ran:
        return InsideCell(where.jax, NOT_RUN, "g-none")
    found = [(key.clause, _effect(effects, where, kind, key, one)) for key, one in ran]
    bad = [(clause, one) for clause, one in found if one is not None]
    if not bad:
        return InsideCell(where.jax, WORKS, "g-ok")
    worst = min((one for _, one in bad), key=lambda one: one.rank)
    works = len(found) - len(bad)
    titles = (effects.results.clauses[one].title.rstrip(".") for one in dict(bad))
    failing = ", ".join(f"“{plain(title)}”" for title in titles)
    part = f"{works} of {len(found)} tests work, not {failing}" if works else ""
    return InsideCell(where.jax, worst.words, worst.css, part)


def _effect(
    effects: Effects, where: Where, kind: str, key: CellKey, outcome: Outcome
) -> Effect | None:
    """Return what is wrong in a cell; None if it gives the right values."""
    digest = effects.digest_of(key)
    raised = digest is not None and any(step.outcome == RAISED for _, step in digest.steps())
    if outcome.verdict is Verdict.CONFORMS:
        return Effect.RAISES if raised else None
    issue = issue_of(effects).get(effects.cause_of(key.clause, outcome))
    effect = None if issue is None else issue.at(where, kind)
    return effect or (Effect.RAISES if raised else Effect.WRONG_NUMBERS)


def _answer(rows: Sequence[InsideRow]) -> str:
    """Return what new pmap does in the newest version, in a sentence."""
    newest: dict[str, list[str]] = {}
    for row in rows:
        cell = row.cells[-1]
        if row.implementation == NEW and cell.says != NOT_RUN:
            newest.setdefault(cell.says, []).append(row.transform)
    if not newest:
        return ""
    jax = rows[0].cells[-1].jax
    where = f"{implementation_words(NEW)} on JAX {jax}"
    if list(newest) == [WORKS]:
        return f"Yes: {where} works inside all of them."
    parts = "; ".join(f"{says} inside {', '.join(some)}" for says, some in newest.items())
    return f"{'In part' if WORKS in newest else 'No'}. {where[:1].upper()}{where[1:]}: {parts}."
