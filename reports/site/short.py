"""A subject in short: whether statements hold, what is dangerous, what memory is needed.

All of it is of the newest JAX, and drawn from what stands on the same page at length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reports.site.documents import ClaimRow
from reports.site.hazards import HazardView
from reports.site.marks import Mark
from reports.site.memory import Figure, Table

_CHECKED = (Mark.RIGHT, Mark.PARTLY, Mark.WRONG)
_NOWHERE = ("no", "")  # a cell of a hazard's row: ran without it, or did not run


@dataclass(frozen=True, slots=True)
class Short:
    """One thing in a line, and where on the page it is told at length, if anywhere."""

    words: str
    text: str
    anchor: str


def statements(rows: Iterable[ClaimRow], jax: str) -> Iterator[Short]:
    """How many of the documents' statements hold."""
    checked = [row for row in rows if row.newest in _CHECKED]
    if checked:
        held = sum(not row.untrue for row in checked)
        text = f"{held} of {len(checked)} that the documents make hold on JAX {jax}"
        yield Short("Statements", text, "statements")


def hazards(some: Sequence[HazardView], versions: Sequence[str]) -> Iterator[Short]:
    """Those of the newest version, and until when there were others; `versions`: newest first."""
    if not some:
        yield Short("Hazards", "None was seen in any version", "")
        return
    last = [(_last(one), one) for one in some]
    now = [f"{one.effect}: {one.title}" for at, one in last if at == 0]
    before = [f"until {versions[at]} {one.effect}: {one.title}" for at, one in last if at]
    parts = [f"In JAX {versions[0]} {'; '.join(now) or 'none'}", "; ".join(before)]
    yield Short("Hazards", ". Before: ".join(filter(None, parts)), "hazards")


def _last(one: HazardView) -> int:
    """The newest version that shows it, by its place; 0 where none is told."""
    columns = zip(*(row.cells for row in one.rows), strict=True)
    shown = (any(cell not in _NOWHERE for cell in column) for column in columns)
    return next((at for at, there in enumerate(shown) if there), 0)


def memory(tables: Iterable[Table], column: int, row: int, words: str) -> Iterator[Short]:
    """What each kind of argument needs at the peak, the least first; by the figures of one cell."""
    found: dict[str, dict[str, Figure]] = {}
    for table in tables:
        figure = table.rows[row].figures[column]
        if figure is not None:
            found.setdefault(table.what, {})[table.topology] = figure
    if found:
        order = sorted(found, key=lambda what: _least(found[what].values()))
        text = "; ".join(f"{what} {_figures(found[what])}" for what in order)
        yield Short("Bytes at the peak", f"{text} ({words})", "memory")


def _least(figures: Iterable[Figure]) -> tuple[bool, float]:
    known = [float(one.multiple) for one in figures if one.multiple]
    return not known, min(known, default=0.0)


def _figures(by_topology: dict[str, Figure]) -> str:
    """What is the same on all topologies once, else each with its topology."""
    said = {where: _said(one) for where, one in by_topology.items()}
    same = set(said.values())
    if len(same) == 1:
        return same.pop()
    return ", ".join(f"{one} on {where}" for where, one in said.items())


def _said(one: Figure) -> str:
    return f"{one.rounded} times" if one.multiple else one.missing or one.reused
