"""The page of gradients: by which factor each way to take one differs from the wanted gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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
RIGHT, WRONG = FACTORS = ("e-repaired", "e-wrong-numbers")  # how a factor looks
UNMAPPED, CLOSED_OVER = (words for key, words in PARAMETERS if key in ("unmapped", "closed-over"))
_WANTED = {
    Wanted.OWN: "each device's own",
    Wanted.SUM: "sum over all devices",
    Wanted.MEAN: "mean over all devices",
}


@dataclass(frozen=True, slots=True)
class FactorCell:
    """A factor, the address of the clause that shows it, and what it holds for, if not for all."""

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
class Table:
    """Rows under a heading; `columns` name the implementations, with their JAX where it is old."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[FormRow, ...]


@dataclass(frozen=True, slots=True)
class GradientsPage:
    """`short` joins rows and tables of equal factors; `tables` have a row per test.

    `newest` is the newest JAX of each implementation.
    """

    short: tuple[Table, ...]
    tables: tuple[Table, ...]
    newest: tuple[tuple[str, str], ...]

    @property
    def as_legacy(self) -> tuple[str, ...]:
        """The headings of tables in which new pmap has legacy pmap's factors wherever that has
        any.
        """
        return tuple(one.heading for one in self.short if _as_legacy(one))


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page; nothing if no gradient was taken."""
    kinds = zip(("one process", "several processes"), TOPOLOGIES, strict=True)
    tables = [
        Table(f"{where}, {words}", *_dated(tuple(_rows(effects, some, topology))))
        for words, topology in kinds
        for where, some in forms()
    ]
    tables = [one for one in tables if one.rows]
    if tables:
        yield Page(
            PAGE,
            "gradients",
            GradientsPage(tuple(_short(tables)), tuple(tables), tuple(_newest(effects))),
            TITLE,
            "psum and pmean in the body or around the map, by kind of parameter, with one process "
            "and with several.",
        )


def _as_legacy(table: Table) -> bool:
    pairs = [row.cells[:2] for row in table.rows if row.cells[0].css.startswith(FACTORS)]
    return bool(pairs) and all(legacy.says == new.says for legacy, new in pairs)


def _newest(effects: Effects) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(name for name, _, _ in COLUMNS):
        side = newest_side(effects.results, name)
        if side is not None:
            yield implementation_words(name), side.jax


def _short(tables: Sequence[Table]) -> Iterator[Table]:
    """The tables with rows of equal factors joined; equal tables are one."""
    found: dict[str, list[Table]] = {}
    for one in tables:
        found.setdefault(one.heading.split(",")[0], []).append(replace(one, rows=_joined(one.rows)))
    for where, several in found.items():
        if len({_factors_of(one) for one in several}) == 1 < len(several):
            yield replace(several[0], heading=f"{where}, one process or several")
        else:
            yield from several


def _factors_of(table: Table) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (row.code, row.parameter, *(f"{cell.says} {cell.note}" for cell in row.cells))
        for row in table.rows
    )


def _joined(rows: Sequence[FormRow]) -> tuple[FormRow, ...]:
    """Join, of one code, unmapped parameters and those closed over, where no factors differ."""
    found: list[FormRow] = []
    for row in rows:
        before = found[-1] if found else None
        if before and before.code == row.code and row.parameter == CLOSED_OVER:
            cells = [_either(*pair) for pair in zip(before.cells, row.cells, strict=True)]
            if before.parameter == UNMAPPED and None not in cells:
                joined = tuple(cell for cell in cells if cell is not None)
                found[-1] = replace(before, parameter=f"unmapped or {CLOSED_OVER}", cells=joined)
                continue
        found.append(row)
    return tuple(
        replace(row, first=len(rows) if number == 0 else 0, parameter=row.parameter.split(":")[0])
        for _, one in groupby(found, key=lambda row: row.code)
        for rows in [list(one)]
        for number, row in enumerate(rows)
    )


def _either(unmapped: FactorCell, closed_over: FactorCell) -> FactorCell | None:
    """The cell of both; None where they differ. What was tested of one only says of which."""
    if (unmapped.says, unmapped.note) == (closed_over.says, closed_over.note):
        return unmapped
    if not closed_over.says:
        return replace(unmapped, note=" ".join(filter(None, (unmapped.note, "if unmapped"))))
    if not unmapped.says:
        return replace(
            closed_over, note=" ".join(filter(None, (closed_over.note, "if closed over")))
        )
    return None


def _dated(rows: tuple[FormRow, ...]) -> tuple[tuple[str, ...], tuple[FormRow, ...]]:
    """The columns' names, and the rows: what all factors of a column note stands in its name."""
    names = []
    for at, (_, _, words) in enumerate(COLUMNS):
        noted = {row.cells[at].note for row in rows if row.cells[at].css.startswith(FACTORS)}
        (note,) = noted if len(noted) == 1 else ("",)
        names.append(f"{words} {note}".strip())
        if note:
            rows = tuple(replace(row, cells=_without_note(row.cells, at)) for row in rows)
    return tuple(names), rows


def _without_note(cells: tuple[FactorCell, ...], at: int) -> tuple[FactorCell, ...]:
    return (*cells[:at], replace(cells[at], note=""), *cells[at + 1 :])


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
    css = RIGHT if factor.right else WRONG
    note = f"in JAX {factor.jax}; {factor.until} raises in these tests" if factor.until else ""
    return FactorCell(factor.says, clause_path(factor.clause), css, note)
