"""The page of gradients: by which factor each way to take one differs from the wanted gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.analysis.effects.pairs import Effects
from reports.analysis.gradients import (
    COLUMNS,
    PARAMETERS,
    TOPOLOGIES,
    Factor,
    Form,
    Wanted,
    factor,
    forms,
)
from reports.analysis.issues.places import newest_side
from reports.render.site.names import clause_path, implementation_words
from reports.render.site.page import Page

PAGE = "gradients.html"
TITLE = "Gradients: the factor under each implementation"
_WANTED = {
    Wanted.OWN: "each device's own",
    Wanted.SUM: "sum over all devices",
    Wanted.MEAN: "mean over all devices",
}


@dataclass(frozen=True, slots=True)
class FactorCell:
    """A factor, the address of the clause that shows it, and a remark on the version."""

    says: str
    href: str
    css: str
    note: str


@dataclass(frozen=True, slots=True)
class FormRow:
    """One way to take a gradient with one kind of parameter; a cell per column."""

    code: str
    first: int  # how many rows have this code, in the first of them
    wanted: str
    parameter: str
    cells: tuple[FactorCell, ...]


@dataclass(frozen=True, slots=True)
class GradientsPage:
    """A table for gradients in the body and around the map, each with one process and several.

    `newest` is the newest JAX of each implementation.
    """

    tables: tuple[tuple[str, tuple[FormRow, ...]], ...]
    columns: tuple[str, ...]
    newest: tuple[tuple[str, str], ...]
    untested: int


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page; nothing if no gradient was taken."""
    kinds = zip(("one process", "several processes"), TOPOLOGIES, strict=True)
    tables = tuple(
        (f"{where}, {words}", tuple(_rows(effects, some, topology)))
        for words, topology in kinds
        for where, some in forms()
    )
    if not any(rows for _, rows in tables):
        return
    cells = [cell for _, rows in tables for row in rows for cell in row.cells]
    yield Page(
        PAGE,
        "gradients",
        GradientsPage(
            tables,
            tuple(words for _, _, words in COLUMNS),
            tuple(_newest(effects)),
            sum(not cell.says for cell in cells),
        ),
        TITLE,
        "psum and pmean in the body or around the map, by kind of parameter, with one process and "
        "with several.",
    )


def _newest(effects: Effects) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(name for name, _, _ in COLUMNS):
        side = newest_side(effects.results, name)
        if side is not None:
            yield implementation_words(name), side.jax


def _rows(effects: Effects, some: tuple[Form, ...], topology: str) -> Iterator[FormRow]:
    for form in some:
        each = (
            (words, _factors(effects, form, passing, topology)) for passing, words in PARAMETERS
        )
        rows = [(words, found) for words, found in each if any(one.says for one in found)]
        for number, (words, found) in enumerate(rows):
            yield FormRow(
                form.code,
                0 if number else len(rows),
                _WANTED[form.wanted],
                words,
                tuple(map(_cell, found)),
            )


def _factors(effects: Effects, form: Form, passing: str, topology: str) -> tuple[Factor, ...]:
    return tuple(
        factor(effects, form, passing, name, check, topology) for name, check, _ in COLUMNS
    )


def _cell(factor: Factor) -> FactorCell:
    if not factor.says:
        return FactorCell("", "", "g-none", "")
    if factor.says == "error":
        return FactorCell("error", clause_path(factor.clause), "e-raises", "")
    css = "e-repaired" if factor.right else "e-wrong-numbers"
    note = f"in JAX {factor.jax}; {factor.until} raises" if factor.until else ""
    return FactorCell(factor.says, clause_path(factor.clause), css, note)
