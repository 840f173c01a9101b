"""The page of costs of leaving legacy pmap: time, communication and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from conformance.model.records import Timing
from reports.analysis.effects.pairs import Effects
from reports.render.measured import duration, times
from reports.render.site.cost_charts import (
    INDEX,
    LEGACY,
    Group,
    by_devices,
    by_story,
    memory_figures,
    moved_figures,
    ratios,
    timed,
)
from reports.render.site.growth import growth_figures
from reports.render.site.memory import Notes, Table, memory, notes
from reports.render.site.names import implementation_words
from reports.render.site.page import Page
from reports.store.outcomes import TimingKey
from reports.store.results import Results

PAGE = "cost.html"

JIT = "under jit"
OF_PATTERNS = ("timing.pattern.", "timing.at-size.")  # which the page of plain jit shows


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One contender's formatted figures."""

    name: str
    topology: str
    jax: str
    implementation: str
    took: str
    ratios: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CostPage:
    """All charts, and the table of all times."""

    groups: tuple[Group, ...]
    times: tuple[tuple[str, tuple[TimeRow, ...]], ...]
    memory: tuple[Table, ...]
    implementations: tuple[tuple[str, str], ...]


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page of costs, if any were measured."""
    results = effects.results
    view = cost_page(results, effects.once.to(notes))
    if view.groups or view.times:
        yield Page(
            PAGE,
            "cost",
            view,
            "Performance and memory",
            "Time, communication and memory of legacy pmap, new pmap and shard_map, by version.",
        )
    if view.times:
        says = "Every duration that was measured, except those of common patterns."
        yield Page("times.html", "times", view, "All times", says)


def cost_page(results: Results, notes_in: Notes | None = None) -> CostPage:
    """Return every figure in these results."""
    taken = times(results)
    measured = memory(results, notes_in)
    groups = (
        ratios(
            results,
            taken,
            "index",
            "Time of `x[0]` of a pmap output",
            "Time of `x[0]` divided by the time of `x[0]` under legacy pmap. A vertical bar is the "
            "range of repeated measurements; one that includes 1 shows no difference.",
            INDEX,
            "index",
            LEGACY,
        ),
        by_devices(results, taken),
        moved_figures(results),
        growth_figures(results),
        ratios(
            results,
            taken,
            "call",
            "Time of a call of a pmapped function",
            "Time of a call divided by the time of the same call under legacy pmap. The arrays are "
            "tiny, so the time is that of dispatch.",
            "timing.dispatch.",
            "call",
            LEGACY,
        ),
        ratios(
            results,
            taken,
            "round-trip",
            "Time of a pmapped function with large arrays",
            "Time of a call divided by the time of the same call under legacy pmap.",
            "timing.round-trip.",
            "call",
            LEGACY,
        ),
        ratios(
            results,
            taken,
            "top-level",
            "Time of a pmapped function at top level, compared with under jit",
            "Time of a call at top level divided by the time of the same call inside `jax.jit`.",
            "timing.top-level.",
            "top level",
            JIT,
        ),
        memory_figures(measured),
    )
    return CostPage(
        groups=tuple(one for one in groups if one.figures),
        times=tuple(_table(taken)),
        memory=measured.tables,
        implementations=measured.implementations,
    )


def _table(taken: Mapping[TimingKey, Timing]) -> Iterator[tuple[str, tuple[TimeRow, ...]]]:
    own = (key for key in taken if not key.timing.startswith(OF_PATTERNS))
    ordered = sorted(own, key=lambda k: by_story(k.timing))
    for timing, keys in groupby(ordered, key=lambda k: k.timing):
        yield (
            _named(timing),
            tuple(
                TimeRow(
                    name=key.contender,
                    topology=key.topology,
                    jax=key.target.jax or "?",
                    implementation=implementation_words(key.implementation),
                    took=_took(taken[key]),
                    ratios=tuple(one.says for one in taken[key].ratios),
                )
                for key in keys
            ),
        )


def _named(timing: str) -> str:
    """Return what is timed, distinguishing programs that are timed in two ways."""
    ways = {"timing.dispatch.": "A call", "timing.top-level.": "A call at the top level and in jit"}
    way = next((way for prefix, way in ways.items() if timing.startswith(prefix)), "")
    return f"{way}: {timed(timing)}" if way else timed(timing)


def _took(timing: Timing) -> str:
    if timing.seconds is None:
        return f"not measured: {timing.failed}"
    took = timing.seconds
    return f"{duration(took.median)} ({duration(took.low)} to {duration(took.high)})"
