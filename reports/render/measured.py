"""The measured figures of the results: times, ratios of times, and bytes moved.

This module only reads numbers; pages decide which of them are drawn, and in what words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.model.records import Ratio, Timing
from reports.render.chart import Point, Series
from reports.store.order import implementation_order, topology_order, version_order
from reports.store.outcomes import CellKey, Outcome, TimingKey
from reports.store.results import Results

MOVED = "moved"  # of a step's notes


@dataclass(frozen=True, slots=True)
class Moved:
    """What one access moved to each device, by which collectives, and of which array."""

    bytes: int
    result: int
    array: int
    collectives: Mapping[str, int]

    @property
    def per_result(self) -> float:
        """The bytes moved per byte of the result."""
        return self.bytes / self.result


def times(results: Results) -> dict[TimingKey, Timing]:
    """Return every contender's figures once, although they illustrate several clauses."""
    found: dict[TimingKey, Timing] = {}
    for key, some in results.timings.items():
        for one in some:
            place = TimingKey(
                one.timing, one.contender, key.target, key.implementation, key.topology
            )
            found[place] = one
    return dict(sorted(found.items(), key=_place))


def _place(item: tuple[TimingKey, Timing]) -> tuple[Any, ...]:
    key = item[0]
    return (
        key.timing,
        key.contender,
        topology_order(key.topology),
        version_order(key.target.jax or ""),
        implementation_order(key.implementation),
    )


def ratio(timing: Timing, to: str) -> Ratio | None:
    """Return the ratio whose other side's name begins with `to`; None if there is none."""
    return next((one for one in timing.ratios if one.to.startswith(to)), None)


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit, with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def moved(outcome: Outcome) -> Moved | None:
    """Return what the last run of a cell noted of an access, in the process that moved most."""
    found: list[Moved] = []
    for run in outcome.runs[-1:]:
        for observation in run.cell.observations:
            steps = observation.get("steps")
            for step in steps if isinstance(steps, list) else ():
                extra = step.get("extra") if isinstance(step, dict) else None
                note = extra.get(MOVED) if isinstance(extra, dict) else None
                if isinstance(note, dict) and (one := _noted(note)) is not None:
                    found.append(one)
    return max(found, key=lambda one: one.bytes, default=None)


def _noted(note: Mapping[str, Any]) -> Moved | None:
    numbers = [note.get(name) for name in ("bytes", "result", "array")]
    collectives = note.get("collectives")
    if not all(type(n) is int for n in numbers) or not isinstance(collectives, dict):
        return None
    whole, result, array = (n for n in numbers if type(n) is int)
    return Moved(whole, result, array, collectives) if result > 0 else None


def moved_in(results: Results, clause: str) -> dict[CellKey, Moved]:
    """Return what the cells of a clause moved, if they noted it."""
    keys = (
        CellKey(clause, target.key, implementation, topology)
        for target in results.targets
        for implementation in results.columns(clause)
        for topology in results.grid[clause]
    )
    found = {key: moved(results.outcome(key)) for key in keys}
    return {key: one for key, one in found.items() if one is not None}


def series(
    names: Mapping[str, str], values: Iterable[tuple[str, int, float, float, float]]
) -> tuple[Series, ...]:
    """Return points (implementation, category, value, low, high) as a series for each of `names`.

    An implementation has the same style in every chart.
    """
    points: dict[str, list[Point]] = {}
    for implementation, at, value, low, high in values:
        points.setdefault(implementation, []).append(Point(at, value, low, high))
    return tuple(
        Series(names[name], implementation_order(name)[0], tuple(points[name]))
        for name in sorted(points, key=implementation_order)
        if name in names
    )
