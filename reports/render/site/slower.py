"""How much slower programs with a known issue are, as timed beside their tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model.records import TargetKey
from reports.render.measured import ratio
from reports.render.site.names import implementation_words
from reports.store.order import implementation_order
from reports.store.outcomes import CellKey, TimingKey
from reports.store.results import Results

LEGACY = "legacy pmap"  # how the other side of a ratio begins that was measured with it


def slower(results: Results, cells: Iterable[CellKey], target: TargetKey) -> tuple[str, ...]:
    """Return a line per implementation and contender: multiples of legacy pmap's time.

    Each covers all sizes and topologies that were timed; a difference within the spread of its
    blocks counts as none.
    """
    found: dict[tuple[str, str, str], dict[TimingKey, float]] = {}
    for key in cells:
        for one in results.timings.get(key, ()) if key.target == target else ():
            than = ratio(one, LEGACY)
            if than is not None:
                place = TimingKey(
                    one.timing, one.contender, target, key.implementation, key.topology
                )
                even = than.low <= 1 <= than.high
                where = (key.implementation, one.contender, than.to.replace("==", " "))
                found.setdefault(where, {})[place] = 1.0 if even else than.median
    order = sorted(found, key=lambda where: implementation_order(where[0]))
    return tuple(line for where in order for line in _ratio_lines(*where, found[where].values()))


def _ratio_lines(place: str, contender: str, to: str, times: Iterable[float]) -> Iterator[str]:
    least, most = min(times), max(times)
    if most > 1:
        both = f"{least:.2g} to {most:.2g}" if f"{least:.2g}" != f"{most:.2g}" else f"{most:.2g}"
        yield f"{implementation_words(place)}, {contender}: {both} times as long as {to}"
