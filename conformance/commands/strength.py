"""`strength RESULTS…`: the share of planted errors that the recorded cells would detect.

Every recorded cell that conforms or is excused is perturbed in each way of `judging.perturbing`
that concerns its clause, and judged again with today's clause and deviation entries.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conformance.model.records as model
from conformance.catalogue.loading import Catalogue
from conformance.commandline.counting import counted
from conformance.commandline.parallel import in_processes
from conformance.judging import rejudging
from conformance.judging.deviations import ByClause, Deviation, matching
from conformance.judging.rejudging import fault_of
from conformance.model.records import Cell, Target
from conformance.model.verdicts import Verdict
from conformance.mutation.perturbing.case import Case, Seen
from conformance.mutation.perturbing.messages import Messages
from conformance.mutation.strength import PASSED, Share, Strength, measure, sampled
from conformance.spec.observation import Observation
from conformance.spec.topology import Topology
from conformance.store.errors import ResultsError
from conformance.store.recorded import cells

WEAKEST = 20  # clauses that are listed
EVERY_S = 2.0  # between two lines of progress
BLOCK = 25  # cells that a process measures at a time


@dataclass(slots=True)
class Recorded:
    """The cells that passed, the facts of their targets, and ids that the catalogue lacks."""

    cells: list[tuple[Cell, Target]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)


def strength(
    files: Sequence[Path],
    catalogue: Catalogue,
    deviations: Sequence[Deviation],
    *,
    clauses: Sequence[str] = (),
    sample: int | None = None,
) -> Strength:
    """Return the strength of the recorded cells; `sample` limits how many are used.

    ResultsError if no cell can be used.
    """
    chosen = catalogue.beginning(clauses)
    recorded = read(files, catalogue)
    every = {cell_id(cell): cell.clause for cell, _ in recorded.cells}
    taken = sampled(every, len(every) if sample is None else sample)
    cells = [
        (cell, target)
        for cell, target in recorded.cells
        if cell.clause in chosen.clauses and cell_id(cell) in taken
    ]
    if not cells:
        raise ResultsError(
            f"{', '.join(map(str, files))}: no cell conforms or has a deviation entry; "
            "give results with such cells"
        )
    if recorded.gone:
        ends = "recorded clause no longer exists", "recorded clauses no longer exist"
        print(counted(len(recorded.gone), *ends), file=sys.stderr)
    parsed = {id(cell): observations(cell) for cell, _ in cells}
    messages = Messages.from_raised(
        step.raised
        for seen in parsed.values()
        for one in seen
        for step in one.steps
        if step.raised is not None
    )
    entries = ByClause(deviations)
    blocks = [cells[at : at + BLOCK] for at in range(0, len(cells), BLOCK)]

    def measured(number: int) -> Strength:
        return measure(
            case(c, t, parsed[id(c)], catalogue, entries, messages) for c, t in blocks[number]
        )

    report = _progress(len(cells))
    whole = Strength()
    for one in in_processes(measured, len(blocks)):
        whole.join(one)
        report(whole.cells + len(whole.otherwise))
    return whole


def read(files: Sequence[Path], catalogue: Catalogue) -> Recorded:
    """Return the passing cells of all files whose clauses still exist."""
    found = Recorded()
    for record, target in cells(files):
        if record.verdict not in PASSED:
            continue
        if record.clause in catalogue.clauses:
            found.cells.append((record, target))
        else:
            found.gone.add(record.clause)
    return found


def cell_id(cell: Cell) -> str:
    """Return the identity of a cell as text."""
    return f"{cell.clause} {cell.implementation} {cell.target} {cell.topology}"


def observations(cell: Cell) -> tuple[Observation, ...]:
    """Return the observations of a recorded cell; ResultsError if they are invalid."""
    try:
        return rejudging.observations(cell)
    except rejudging.CannotJudge as error:
        raise ResultsError(f"{cell_id(cell)}: {error}; run it again") from error


def case(
    cell: Cell,
    target: Target,
    seen: tuple[Observation, ...],
    catalogue: Catalogue,
    entries: ByClause,
    messages: Messages,
) -> Case:
    """Return a recorded cell in the form in which it is judged."""
    packages = target.packages
    where = (target.jax or "", target.platform or "", cell.topology, packages)
    return Case(
        clause=catalogue.clauses[cell.clause],
        implementation=cell.implementation,
        topology=Topology.parse(cell.topology),
        jax=target.jax or "",
        seen=Seen(seen, fault_of(cell)),
        entries=matching(entries[cell.clause], cell.clause, cell.implementation, *where),
        messages=messages,
    )


def _progress(total: int) -> Callable[[int], None]:
    last = time.monotonic()

    def report(number: int) -> None:
        nonlocal last
        if time.monotonic() - last > EVERY_S or number == total:
            last = time.monotonic()
            print(f"{number} of {counted(total, 'cell')}", file=sys.stderr)

    return report


def lines(found: Strength, *, weakest: int = WEAKEST, examples: bool = False) -> Iterator[str]:
    """Yield the table by perturbation and section, and the weakest clauses, as text."""
    sections = found.sections
    width = max(len(name) for name in ["all", *found.perturbations])
    for excused, title in ((False, Verdict.CONFORMS), (True, Verdict.KNOWN_DEVIATION)):
        whole = found.total(excused=excused)
        if not whole.judged:
            continue
        yield f"{title}: {_percent(whole)} of {whole.judged} perturbations noticed"
        heads = "".join(f"{_short(name):>9}" for name in sections)
        yield f"  {'':{width}} {'all':>7} {'judged':>7}{heads}"
        for name in [*found.perturbations, ""]:
            all_of_it = found.total(perturbation=name, excused=excused)
            if all_of_it.judged:
                each = "".join(
                    f"{_percent(found.total(perturbation=name, section=one, excused=excused)):>9}"
                    for one in sections
                )
                share = f"{_percent(all_of_it):>7} {all_of_it.judged:>7}"
                yield f"  {name or 'all':{width}} {share}{each}"
        yield ""
    weak = [(id, one) for id, one in found.clauses().items() if one.missed]
    clauses = counted(len(found.clauses()), "clause")
    yield f"{len(weak)} of {clauses} miss something; the weakest:"
    for id, one in weak[:weakest]:
        yield f"  {_percent(one):>6} of {one.judged:>5}  {id}"
        for name, count in found.unnoticed(id).items():
            yield f"          {count:>5}  {name}"
            if examples:
                yield f"                 {found.missed[name, id]}"
    if found.otherwise:
        yield counted(
            len(found.otherwise),
            "cell is judged otherwise today, and was not measured",
            "cells are judged otherwise today, and were not measured",
        )
    whole = found.total()
    cells = counted(found.cells, "cell")
    yield f"{_percent(whole)} of {whole.judged} perturbations of {cells} noticed"


def records(found: Strength) -> Iterator[model.Strength]:
    """Yield a line of a results file for each clause, for the report."""
    for id, one in sorted(found.clauses().items()):
        yield model.Strength(
            clause=id,
            cells=found.cells_of[id],
            judged=one.judged,
            noticed=one.noticed,
            unnoticed=found.unnoticed(id),
        )


def record(found: Strength) -> dict[str, Any]:
    """Return everything as JSON."""
    return {
        "noticed": found.total().noticed,
        "judged": found.total().judged,
        "cells": found.cells,
        "judged_otherwise": found.otherwise,
        "perturbations": [
            {
                "perturbation": name,
                "section": section,
                "excused": excused,
                "noticed": one.noticed,
                "judged": one.judged,
            }
            for (name, section, excused), one in sorted(found.by_section.items())
        ],
        "clauses": [
            {
                "clause": id,
                "noticed": one.noticed,
                "judged": one.judged,
                "unnoticed": found.unnoticed(id),
            }
            for id, one in found.clauses().items()
        ],
    }


def _percent(share: Share) -> str:
    if not share.judged:
        return "-"
    # Rounded down: what is not all of them is never shown as 100 %.
    return f"{int(share.share * 1000) / 10:.1f}%"


def _short(section: str) -> str:
    return section[:8]
