"""How much slower programs with a known issue are, as timed beside their tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from conformance.model.records import TargetKey
from reports.render.measured import duration, ratio
from reports.render.site.names import implementation_words
from reports.store.order import implementation_order, version_order
from reports.store.outcomes import CellKey, TimingKey
from reports.store.results import Results

LEGACY = "legacy pmap"  # how the other side of a ratio begins that was measured with it


class _Taken(NamedTuple):
    """A multiple of legacy pmap's time, the time, and the version of legacy pmap."""

    ratio: float
    seconds: float
    to: str


def slower(results: Results, cells: Iterable[CellKey], target: TargetKey) -> tuple[str, ...]:
    """Return a line per implementation and contender: the multiple of legacy pmap's time.

    Each covers all sizes and topologies that were timed; a difference within the spread of its
    blocks counts as none.
    """
    found: dict[tuple[str, str], dict[TimingKey, _Taken]] = {}
    for key in cells:
        for one in results.timings.get(key, ()) if key.target == target else ():
            against = ratio(one, LEGACY)
            if against is not None:
                place = TimingKey(
                    one.timing, one.contender, target, key.implementation, key.topology
                )
                even = against.low <= 1 <= against.high
                took = one.seconds.median if one.seconds is not None else 0.0
                taken = _Taken(1.0 if even else against.median, took, against.to.replace("==", " "))
                found.setdefault((key.implementation, one.contender), {})[place] = taken
    order = sorted(found, key=lambda where: implementation_order(where[0]))
    return tuple(
        line for where in order for line in _ratio_lines(*where, tuple(found[where].values()))
    )


def _ratio_lines(place: str, contender: str, some: Collection[_Taken]) -> Iterator[str]:
    least, most = min(one.ratio for one in some), max(one.ratio for one in some)
    if most > 1:
        versions = sorted({one.to.rpartition(" ")[2] for one in some}, key=version_order)
        short, long = min(one.seconds for one in some), max(one.seconds for one in some)
        yield (
            f"{contender} under {implementation_words(place)} takes "
            f"{_both(duration(short), duration(long))}: "
            f"{_both(*map(_two_digits, (least, most)))} times as long as under {LEGACY} "
            f"(JAX {' or '.join(versions)})"
        )


def _both(least: str, most: str) -> str:
    return most if least == most else f"{least} to {most}"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"  # never as a power of ten
