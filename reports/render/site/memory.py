"""Measured memory: the peak of each kind of argument, in multiples of its bytes.

Read from the probes' notes with one key: `what` was passed to the map, and either the `multiple` of
its bytes at the peak, or how many of its buffers were `reused`. Clauses that noted the same `what`
share a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from reports.analysis.effects.happened import ABSENT, RETURNS, happened
from reports.analysis.issues.places import removed, where
from reports.render.site.names import clause_path, implementation_words, safe_name
from reports.store.alike import Once
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results

KEY = "memory"  # of a step's notes

Notes = Callable[[Cell], tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One entry: the multiple, what happened to the buffers, and the evidence."""

    multiple: str
    reused: str
    verdict: Verdict
    href: str
    hint: str
    missing: str  # why there is nothing to show, in words

    @property
    def rounded(self) -> str:
        """The multiple, rounded to a tenth, which is the same from run to run."""
        return f"{float(self.multiple):.1f}" if self.multiple else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One target: a figure per implementation, None if nothing should have been measured."""

    label: str
    figures: tuple[Figure | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One kind of argument on one topology."""

    what: str
    anchor: str
    topology: str
    rows: tuple[Row, ...]

    @property
    def href(self) -> str:
        """The test that measured all rows; empty where nothing was to be measured."""
        figures = (one for row in self.rows for one in row.figures if one is not None)
        return next((one.href for one in figures), "")

    @property
    def spans(self) -> tuple[Row, ...]:
        """The rows, with targets of equal rounded figures joined."""
        return self._joined(lambda figure: figure.rounded)

    @property
    def exact_spans(self) -> tuple[Row, ...]:
        """The rows, with targets of equal figures joined."""
        return self._joined(lambda figure: figure.multiple)

    def _joined(self, multiple: Callable[[Figure], str]) -> tuple[Row, ...]:
        """Return the rows with equal neighbours joined, linked to the last one's evidence."""

        def shown(figure: Figure | None) -> tuple[str, str, str] | None:
            if figure is None:
                return None
            return multiple(figure), figure.reused, figure.missing

        found = []
        for _, some in groupby(self.rows, key=lambda row: tuple(map(shown, row.figures))):
            first, *rest = some
            last = [first, *rest][-1]
            label = f"{first.label} to {last.label.removeprefix('jax ')}" if rest else first.label
            found.append(Row(label, last.figures))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Memory:
    """All tables; `implementations` are the columns, with their heads."""

    implementations: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def memory(results: Results, notes_in: Notes | None = None) -> Memory:
    """Return a table per topology and kind of argument whose multiple was measured."""
    measured: dict[tuple[str, str], str] = {}  # what and topology -> the clause that measured it
    looked: dict[tuple[str, str], str] = {}  # the same, of the clause that looked at the buffers
    notes_in = notes_in or Once(notes).to(notes)
    for key, outcome in results.outcomes.items():
        for note in notes_in(outcome.runs[-1].cell) if outcome.runs else ():
            where = measured if "multiple" in note else looked
            where.setdefault((str(note["what"]), key.topology), key.clause)
    expected = {name for clause in measured.values() for name in results.columns(clause)}
    # What maps nothing has no column here, though other clauses have it.
    implementations = [name for name in results.implementations if name in expected]
    return Memory(
        implementations=tuple((i, implementation_words(i)) for i in implementations),
        tables=tuple(
            Table(
                what=what,
                anchor=f"m-{safe_name(chr(0).join((what, topology)))}",
                topology=topology,
                rows=tuple(
                    Row(
                        results.labels[target.key],
                        tuple(
                            _figure(
                                results,
                                CellKey(clause, target.key, implementation, topology),
                                looked.get((what, topology), ""),
                                what,
                            )
                            for implementation in implementations
                        ),
                    )
                    for target in results.targets
                ),
            )
            for (what, topology), clause in measured.items()
        ),
    )


def _figure(results: Results, key: CellKey, looked: str, what: str) -> Figure | None:
    outcome = results.outcome(key)
    gone = where(key) in removed(results)
    if outcome.verdict is Verdict.NOT_APPLICABLE and not gone:
        return None
    multiples = _found(outcome, what, "multiple")
    shares = _found(results.outcome(key._replace(clause=looked)), what, "reused") if looked else []
    return Figure(
        # Several processes measure each its own: who plans, plans with the most.
        multiple=f"{max(multiples):.2f}" if multiples else "",
        reused=_words(shares),
        verdict=outcome.verdict,
        href=clause_path(key.clause),
        hint=outcome.reason,
        missing="" if multiples or shares else _missing(outcome, gone=gone),
    )


def _missing(outcome: Outcome, *, gone: bool) -> str:
    """Return why a cell has no figure: removed, not run, or ended before the measurement."""
    if outcome.verdict is Verdict.LEFT_OUT and not gone:
        return ABSENT[Verdict.NOT_RUN]
    how = ABSENT[Verdict.REMOVED] if gone else happened(outcome)
    return "ran, without this figure" if how == RETURNS else how


def _words(shares: list[Any]) -> str:
    if not shares:
        return ""
    if all(taken == there for taken, there in shares):
        return "reused"
    return "not reused" if not any(taken for taken, _ in shares) else "partly reused"


def _found(outcome: Outcome, what: str, key: str) -> list[Any]:
    noted = notes(outcome.runs[-1].cell) if outcome.runs else ()
    return [n[key] for n in noted if n["what"] == what and key in n]


def notes(cell: Cell) -> tuple[Mapping[str, Any], ...]:
    """Return the valid notes of a cell, over all processes and steps."""
    return tuple(note for _, note in noted(cell))


def noted(cell: Cell) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the steps of a cell that have a valid note, each with it."""
    for observation in cell.observations:
        steps = observation.get("steps")
        for step in steps if isinstance(steps, list) else ():
            extra = step.get("extra") if isinstance(step, dict) else None
            note = extra.get(KEY) if isinstance(extra, dict) else None
            if isinstance(note, dict) and isinstance(note.get("what"), str) and _fits(note):
                yield step, note


def _fits(note: Mapping[str, Any]) -> bool:
    if "multiple" in note:
        return type(note["multiple"]) in (int, float)
    reused = note.get("reused")
    return isinstance(reused, list) and len(reused) == 2 and all(type(one) is int for one in reused)
