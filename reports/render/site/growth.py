"""Charts of communication on growing TPU pods: compiled for slices of them, not run.

Eight CPU devices cannot distinguish a constant cost from one that grows with the pod; compiling for
slices of many sizes can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from conformance.model.records import Growth
from reports.render.chart import Chart, Point, Series
from reports.render.site.cost_charts import Drawn, Group, figure, multiple
from reports.render.site.names import Link, clause_path, safe_name
from reports.render.site.text import plain
from reports.store.order import version_order
from reports.store.results import Results

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))

# What libtpu calls a chip, and what everybody else does.
_CHIPS = {"TPU v5": "TPU v5p", "TPU v5 lite": "TPU v5e", "TPU v6 lite": "TPU v6e"}


def growth_figures(results: Results) -> Group:
    """Return a chart per access and kind of chip: bytes received per chip, by number of chips."""
    some = sorted(results.growths, key=lambda one: (one.clause, one.chip))
    figures: list[Drawn] = []
    for (clause, chip), group in groupby(some, key=lambda one: (one.clause, one.chip)):
        ordered = sorted(group, key=lambda one: (version_order(one.jax), one.implementation))
        href = clause_path(clause) if clause in results.clauses else ""
        figures += figure(_chart(clause, chip, ordered), Link(ordered[0].text, href))
    return Group("pods", "Reading a part of an array on a TPU pod", _sentence(some), tuple(figures))


def _sentence(some: Sequence[Growth]) -> str:
    rows = ", ".join(dict.fromkeys(_size(one.row) for one in some))
    by = ", ".join(dict.fromkeys(f"jax {one.jax} with libtpu {one.libtpu}" for one in some))
    return (
        "Bytes that one access sends to each chip, divided by the size of the array's shard on "
        f"that chip ({rows}). The programs were compiled with {by}, and not run. A rising line "
        "means that the access costs more on a larger pod."
    )


def _chart(clause: str, chip: str, some: Sequence[Growth]) -> Chart:
    chips = sorted({point.chips for one in some for point in one.points})
    return Chart(
        key=f"pods-{safe_name(clause)}-{safe_name(chip)}",
        title=f"{plain(some[0].text)}, {_CHIPS.get(chip, chip)}",
        description="",
        across="chips",
        categories=tuple(map(str, chips)),
        upwards="bytes sent to a chip / bytes of the array on it",
        series=tuple(_series(some, chips)),
        label=multiple,
        # Where nothing is sent at all that is to be seen, and a logarithm has no place for it.
        log=any(point.bytes for one in some for point in one.points),
    )


def _series(some: Sequence[Growth], chips: Sequence[int]) -> Iterable[Series]:
    for style, one in enumerate(some):
        at = {point.chips: point.bytes / max(1, one.row) for point in one.points}
        points = (Point(chips.index(n), at[n], at[n], at[n]) for n in sorted(at))
        yield Series(f"jax {one.jax}", style, tuple(points))


def _size(count: int) -> str:
    return next(
        (f"{count / size:g} {unit}" for unit, size in _UNITS if count >= size), f"{count} B"
    )
