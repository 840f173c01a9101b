"""The summary of a subject: whether statements hold, what is dangerous, what memory is needed.

All of it is about the newest JAX, and repeats what the page shows below in detail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.model.verdicts import Verdict
from reports.render.site.causes import CauseView
from reports.render.site.documents import ClaimRow
from reports.render.site.hazards import NOWHERE, HazardView
from reports.render.site.marks import CHECKED
from reports.render.site.memory import Figure, Table

_HAZARDS = "Crashes, hangs, wrong values"
_MOST_EDITS = 4


@dataclass(frozen=True, slots=True)
class Short:
    """One item in a line or a few, with a link to its details on the page, if any."""

    words: str
    text: str
    anchor: str
    lines: tuple[str, ...] = ()


def statements(rows: Iterable[ClaimRow], jax: str) -> Iterator[Short]:
    """Yield how many of the documents' statements hold."""
    checked = [row for row in rows if row.newest in CHECKED]
    if checked:
        true = sum(not row.untrue for row in checked)
        text = f"{true} of {len(checked)} hold on JAX {jax}"
        yield Short("Documented claims", text, "statements")


def hazards(some: Sequence[HazardView], versions: Sequence[str]) -> Iterator[Short]:
    """Yield those of the newest version, and earlier ones; `versions`: newest first."""
    if not some:
        yield Short(_HAZARDS, "None was seen in any version", "")
        return
    now: dict[str, str] = {}  # the title of each to its effect
    before: dict[str, str] = {}
    for one in sorted(some, key=_last):
        at = _last(one)
        if at == 0:
            now.setdefault(one.title, one.effect)
        elif one.title in now:  # what it did of old is told where it still does something
            now[one.title] += f" (up to {versions[at]}: {one.effect})"
        else:
            before.setdefault(one.title, f"up to {versions[at]}: {one.effect}")
    lines = [f"{title}: {how}" for title, how in (*now.items(), *before.items())]
    count = len(now) or "none"
    yield Short(_HAZARDS, f"On JAX {versions[0]}: {count}", "hazards", tuple(lines))


def _last(view: HazardView) -> int:
    """Return the newest version that shows it, by position; 0 if unknown."""
    columns = zip(*(row.cells for row in view.rows), strict=True)
    shown = (any(cell not in NOWHERE for cell in column) for column in columns)
    return next((at for at, there in enumerate(shown) if there), 0)


def edits(some: Iterable[CauseView]) -> Iterator[Short]:
    """Yield what to write instead, the edit of most known issues first."""
    counted = Counter(one.edit for one in some if one.edit)
    if counted:
        lines = tuple(edit for edit, _ in counted.most_common(_MOST_EDITS))
        yield Short("What to do", "", "causes", lines)


def memory(tables: Iterable[Table], column: int, row: int, words: str) -> Iterator[Short]:
    """Yield what each kind of argument needs at the peak, the least first; by the figures of one
    cell.
    """
    found = _by_argument(tables, column, row)
    if found:
        order = sorted(found, key=lambda what: _least(found[what].values()))
        lines = tuple(f"{what}: {_figures(found[what])}" for what in order)
        yield Short("Peak memory", f"In multiples of the argument, {words}", "memory", lines)


def peaks(tables: Iterable[Table], column: int, row: int) -> dict[str, str]:
    """Return the same by argument, for arguments with a measured multiple."""
    found = _by_argument(tables, column, row)
    return {
        what: _figures({where: one for where, one in figures.items() if one.multiple})
        for what, figures in found.items()
        if any(one.multiple for one in figures.values())
    }


def _by_argument(tables: Iterable[Table], column: int, row: int) -> dict[str, dict[str, Figure]]:
    found: dict[str, dict[str, Figure]] = {}
    for table in tables:
        figure = table.rows[row].figures[column]
        if figure is not None and figure.verdict is not Verdict.NOT_RUN:
            found.setdefault(table.what, {})[table.topology] = figure
    return found


def _least(figures: Iterable[Figure]) -> tuple[bool, float]:
    known = [float(one.multiple) for one in figures if one.multiple]
    return not known, min(known, default=0.0)


def _figures(by_topology: dict[str, Figure]) -> str:
    """Return each different figure once, with its topologies."""
    found: dict[str, list[str]] = {}
    for where, one in by_topology.items():
        found.setdefault(_figure_words(one), []).append(where)
    return ", ".join(f"{one} on {' and '.join(some)}" for one, some in found.items())


def _figure_words(figure: Figure) -> str:
    return f"{figure.rounded} times" if figure.multiple else figure.missing or figure.reused
