"""Divides the cells of a run among machines: each gets whole runs of cases, as long as the others.

The cells stand in one order, by target and topology, and are cut into as many stretches as there
are shards; so a shard needs few targets and starts few clusters, and all shards together are
exactly the whole, whatever else a run leaves out. What a cell takes is known from earlier results.
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
    """A stretch of the units: from `first` on, up to `end`, which is the next shard's."""

    first: Unit | None
    end: Unit | None

    def has(self, unit: Unit) -> bool:
        """Whether a unit is in the stretch; `first` is None where it is empty."""
        return self.first is not None and self.first <= unit and not self._over(unit)

    def _over(self, unit: Unit) -> bool:
        return self.end is not None and unit >= self.end


def parse(text: str) -> tuple[int, int]:
    """The number and the count of `3/12`; ValueError says how it is written."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count <= MOST_SHARDS:
        raise ValueError(
            f"--shard {shown(text)}: write which of how many, from 1/12 to 12/12; "
            f"{MOST_SHARDS} at the most"
        )
    return number, count


def unit(cell: CellId, runs: Mapping[str, Sequence[str]]) -> Unit:
    """What a cell may not be parted from: the clauses that judge the same run."""
    return cell.target, cell.topology, runs.get(cell.clause, (cell.clause,))[0]


def cut(
    cells: Iterable[CellId],
    runs: Mapping[str, Sequence[str]],
    seconds: Mapping[CellId, float],
    number: int,
    count: int,
) -> Shard:
    """The `number`th of `count` stretches, by how long its cells took.

    A cell that no result tells of is taken to be as long as the others on average.
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
