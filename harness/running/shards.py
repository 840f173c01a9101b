"""Divide the cells of a run among machines: equal shares of time, whole runs of cases.

The cells are ordered by target and topology and cut into as many intervals as there are shards, so
that a shard needs few targets and starts few clusters. All shards together are exactly the whole.
Durations come from earlier results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.commandline.limits import shown
from harness.running.cells import CellId

MOST_SHARDS = 100_000
UNKNOWN_S = 0.5  # of a cell that no earlier result tells of, where none tells of any

Unit = tuple[str, str, str]  # target, topology, and the clause for which the run is made


@dataclass(frozen=True, slots=True)
class Shard:
    """An interval of the units: from `first` up to `end`, which is the next shard's first."""

    first: Unit | None
    end: Unit | None

    def has(self, unit: Unit) -> bool:
        """Return whether a unit is in the interval; `first` is None if the interval is empty."""
        return self.first is not None and self.first <= unit and not self._over(unit)

    def _over(self, unit: Unit) -> bool:
        return self.end is not None and unit >= self.end


def parse(text: str) -> tuple[int, int]:
    """Parse `3/12` into number and count; ValueError names the syntax."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count <= MOST_SHARDS:
        raise ValueError(
            f"--shard {shown(text)}: write which of how many, from 1/12 to 12/12; "
            f"{MOST_SHARDS} at the most"
        )
    return number, count


def unit(cell: CellId, runs: Mapping[str, Sequence[str]]) -> Unit:
    """Return what a cell may not be separated from: the clauses that judge the same run."""
    return cell.target, cell.topology, runs.get(cell.clause, (cell.clause,))[0]


def cut(
    cells: Iterable[CellId],
    runs: Mapping[str, Sequence[str]],
    seconds: Mapping[CellId, float],
    number: int,
    count: int,
) -> Shard:
    """Return shard `number` of `count`, balanced by the seconds that its cells took.

    A cell without a known duration counts as the average of the others.
    """
    usual = sum(seconds.values()) / len(seconds) if seconds else UNKNOWN_S
    weights: dict[Unit, float] = {}
    for cell in cells:
        key = unit(cell, runs)
        weights[key] = weights.get(key, 0.0) + seconds.get(cell, usual)
    whole = sum(weights.values()) or 1.0
    before, firsts = 0.0, dict[int, Unit]()
    for key in sorted(weights):
        place = min(count - 1, int((before + weights[key] / 2) / whole * count))
        firsts.setdefault(place, key)
        before += weights[key]
    end = next((firsts[at] for at in range(number, count) if at in firsts), None)
    return Shard(firsts.get(number - 1), end)
