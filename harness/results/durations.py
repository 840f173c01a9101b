"""How long the runs in results files took: the file from which the core tier is chosen."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from conformance.catalogue import loading
from conformance.model.records import Cell
from conformance.model.verdicts import Verdict
from conformance.store.outputs import write_text
from conformance.store.reading import records
from harness.running.tiers import FILE

# A run that takes and computes less is as good as any other.
LEAST_S = 0.5
LEAST_BUSY_S = 0.1
RAN = (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION)

Figures = dict[tuple[str, str], list[tuple[float, float]]]


def write(files: Iterable[Path], output: Path = FILE) -> int:
    """Write the median seconds and CPU seconds of each long run; return how many runs those are.

    Runs that appear in no file keep their old figures. ResultsError names an invalid line.
    """
    catalogue = loading.load()
    firsts = {ids[0] for ids in catalogue.runs.values()}
    found: Figures = {}
    for file in files:
        for _, record in records(file):
            if isinstance(record, Cell):
                _take(record, catalogue, found)
    known = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    kept = {
        (topology, clause): seconds
        for topology, some in known.items()
        for clause, seconds in some.items()
        if clause in firsts
    }
    for run, figures in found.items():
        seconds, busy = (statistics.median(one) for one in zip(*figures, strict=True))
        kept[run] = [round(seconds, 1), round(busy, 2)]
    groups: dict[str, dict[str, Sequence[float]]] = {}
    for (topology, clause), figure in sorted(kept.items()):
        if figure[0] >= LEAST_S or figure[1] >= LEAST_BUSY_S:
            groups.setdefault(topology, {})[clause] = figure
    write_text(output, _text(groups))
    return sum(map(len, groups.values()))


def _take(cell: Cell, catalogue: loading.Catalogue, found: Figures) -> None:
    seconds, busy = cell.seconds, cell.cpu_seconds
    known = cell.clause in catalogue.runs  # not where results are of a clause that is gone
    if known and cell.verdict in RAN and seconds is not None and busy is not None:
        first = catalogue.runs[cell.clause][0]
        found.setdefault((cell.topology, first), []).append((float(seconds), float(busy)))


def _text(groups: dict[str, Any]) -> str:
    """Return JSON with one line per run, so that a diff shows what changed."""
    parts = []
    for topology, clauses in groups.items():
        rows = ",\n".join(f"  {json.dumps(id)}: {json.dumps(s)}" for id, s in clauses.items())
        parts.append(f'"{topology}": {{\n{rows}\n}}')
    return "{" + ",\n".join(parts) + "}\n"
