"""The charts of the page of costs: which numbers are drawn, and their captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from conformance.model.records import TargetKey, Timing
from conformance.model.verdicts import Verdict
from reports.analysis.effects.happened import ABSENT, happened
from reports.analysis.issues.places import Where, removed
from reports.render.chart import Chart
from reports.render.measured import moved_in, ratio, series
from reports.render.site.memory import Memory
from reports.render.site.names import Link, clause_path, implementation_words, safe_name
from reports.render.site.text import plain, shortened, worded
from reports.store.order import implementation_order, topology_order, version_order
from reports.store.outcomes import CellKey, TimingKey
from reports.store.results import Results

INDEX, LOCAL, LEGACY = "timing.index.", "local shard", "legacy pmap"
JAX = "JAX"  # what the categories of a chart by version are
_FAILED, _WHY_SHOWN = "failed: ", 90
_VERSIONS_LISTED = 6  # of more the first and the last are named
# What is asked about most of all that is measured; all of it is in the matrix.
ACCESSES = {
    "indexing.integer.zero": "`x[0]`",
    "indexing.integer.jit-zero": "`x[0]` under jit",
    "indexing.integer.jit-traced": "`x[i]` under jit, `i` an argument",
    "indexing.access.rest": "`x[1:]`",
    "indexing.access.iteration": "`for row in x`",
    "indexing.addressable-shard.cost": "`x.addressable_shards[0].data`",
}
_TIMED = {
    "timing.index.4kib": "`x[0]`, 4 KiB per device",
    "timing.index.64kib": "`x[0]`, 64 KiB per device",
    "timing.index.1mib": "`x[0]`, 1 MiB per device",
    "timing.index.16mib": "`x[0]`, 16 MiB per device",
    "timing.dispatch.one": "One small array",
    "timing.dispatch.leaves": "A pytree of many leaves",
    "timing.dispatch.psum": "One small array, with a psum",
    "timing.round-trip.large": "1 MiB per device",
    "timing.top-level.one": "One small array",
    "timing.top-level.leaves": "A pytree of many leaves",
    "timing.top-level.psum": "One small array, with a psum",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart, and the page with its evidence."""

    chart: Chart
    evidence: Link

    @property
    def versions(self) -> str:
        """The versions of JAX that were measured; empty where the names of the lines say it."""
        return self._versions_of(point.at for one in self.chart.series for point in one.points)

    @property
    def flat(self) -> str:
        """Return a sentence in place of a chart whose lines are all level; empty otherwise."""
        lines = []
        for one in self.chart.series:
            values = {self.chart.label(point.value) for point in one.points}
            if len(values) > 1:
                return ""
            measured = self._versions_of(point.at for point in one.points)
            where = f" ({measured})" if measured else ""
            lines += [f"{one.name}: {value}{where}" for value in values]
        upwards = self.chart.upwards
        return f"{upwards[:1].upper()}{upwards[1:]}, always the same: {', '.join(lines)}"

    def _versions_of(self, places: Iterable[int]) -> str:
        if self.chart.across != JAX:
            return ""
        some = [self.chart.categories[at] for at in sorted(set(places))]
        if len(some) <= _VERSIONS_LISTED:
            return f"JAX {', '.join(some)}"
        return f"{len(some)} versions, JAX {some[0]} to {some[-1]}"


@dataclass(frozen=True, slots=True)
class Group:
    """Charts about one subject, side by side, with a sentence on how to read them.

    `conclusion` is what they show of the newest version of JAX; empty if one line cannot tell it.
    """

    anchor: str
    title: str
    sentence: str
    figures: tuple[Drawn, ...]
    conclusion: str = ""


def timed(timing: str) -> str:
    """Return the name of a timing for readers."""
    return _TIMED.get(timing, timing.removeprefix("timing.").replace(".", ", "))


def by_story(timing: str) -> tuple[int, str]:
    """Sort key: the order of the table above, small before large."""
    order = list(_TIMED)
    return order.index(timing) if timing in _TIMED else len(order), timing


def ratios(
    results: Results,
    taken: Mapping[TimingKey, Timing],
    anchor: str,
    title: str,
    sentence: str,
    prefix: str,
    contender: str,
    to: str,
) -> Group:
    """Return a chart per timing and topology: a ratio by version of JAX."""
    here = {
        k: t for k, t in taken.items() if k.timing.startswith(prefix) and k.contender == contender
    }
    versions = _versions(k.target for k in here)
    figures = []
    some = sorted(here, key=lambda k: (by_story(k.timing), topology_order(k.topology)))
    for (timing, topology), group in groupby(some, key=lambda k: (k.timing, k.topology)):
        keys = list(group)
        points = [
            (key.implementation, versions.index(key.target), one.median, one.low, one.high)
            for key in keys
            if (one := ratio(here[key], to)) is not None
        ]
        name = f"{plain(timed(timing))}, {topology}"
        missing = _without(results, here, timing, topology, versions)
        figures += figure(
            Chart(
                key=f"{anchor}-{safe_name(timing)}-{topology}",
                title=name,
                description="",
                across=JAX,
                categories=tuple(target.jax or "?" for target in versions),
                upwards=f"time / time under {to.removeprefix('under ')}",
                series=series(_names(key.implementation for key in here), points),
                label=multiple,
                log=True,
                even=1.0,
                joined=False,
                note=" ".join(
                    filter(None, (_baselines(here, keys, to), *_failures(missing, versions)))
                ),
                missing=missing,
            ),
            _evidence(here, timing),
        )
    return Group(anchor, title, sentence, tuple(figures), _in_short(here, versions[-1:], to))


def _in_short(taken: Mapping[TimingKey, Timing], newest: Sequence[TargetKey], to: str) -> str:
    """Return the least and the most ratio of each implementation in the newest version of JAX.

    A ratio that is 1 within the range of its measurements counts as 1.
    """
    found: dict[str, list[float]] = {}
    for key, timing in taken.items():
        if key.target in newest and (one := ratio(timing, to)) is not None:
            value = 1.0 if one.low <= 1 <= one.high else one.median
            found.setdefault(key.implementation, []).append(value)
    first, *others = [
        f"{implementation_words(name)} {_least_to_most(found[name])}"
        for name in sorted(found, key=implementation_order)
    ] or [""]
    under = f"the time under {to.removeprefix('under ')}"
    return ", ".join((f"On JAX {newest[0].jax or '?'}: {first} {under}", *others)) if first else ""


def _least_to_most(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys((multiple(min(values)), multiple(max(values)))))


def _failures(
    missing: Mapping[tuple[str, int], str], versions: Sequence[TargetKey]
) -> Iterator[str]:
    """Yield a sentence per time that is missing because its program failed."""
    for (name, at), why in missing.items():
        if why.startswith(_FAILED):
            text = shortened(why.removeprefix(_FAILED), _WHY_SHOWN)
            yield f"{name} on JAX {versions[at].jax} has no time: it {text.split(': ', 1)[-1]}"


def _baselines(taken: Mapping[TimingKey, Timing], keys: Iterable[TimingKey], to: str) -> str:
    """Return by which version's time each is divided, which is its own where that has one."""
    own: dict[str, None] = {}
    others: dict[str, list[str]] = {}
    for key in keys:
        jax, base = key.target.jax or "?", ratio(taken[key], to)
        if base is None:
            continue
        version = base.to.removeprefix(to).removeprefix(" of ").removeprefix("jax").strip(" =")
        if version in ("", jax):
            own[jax] = None
        elif jax not in others.setdefault(version, []):
            others[version].append(jax)
    if not others and to != LEGACY:  # of one run, which its name says
        return ""
    older = [
        f" JAX {', '.join(some)} has no {to}: its times are divided by {to}'s on JAX {version}, "
        "timed in the same run."
        for version, some in others.items()
    ]
    if not own and not older:
        return ""
    return f"1x is {to}{' on the same JAX' if own else ''}.{''.join(older)}"


def by_devices(results: Results, taken: Mapping[TimingKey, Timing]) -> Group:
    """Return the ratio of indexing by topology, in the newest JAX, if several were timed."""
    here = {k: t for k, t in taken.items() if k.timing.startswith(INDEX) and k.contender == "index"}
    figures = []
    for timing, keys in groupby(here, key=lambda k: k.timing):
        some = list(keys)
        newest = _versions(k.target for k in some)[-1]
        topologies = sorted({k.topology for k in some}, key=topology_order)
        if len(topologies) < 2:
            continue
        points = [
            (key.implementation, topologies.index(key.topology), one.median, one.low, one.high)
            for key in some
            if key.target == newest and (one := ratio(here[key], LOCAL)) is not None
        ]
        figures += figure(
            Chart(
                key=f"devices-{safe_name(timing)}",
                title=f"{plain(timed(timing))}, JAX {newest.jax}",
                description="",
                across="processes × devices of each",  # noqa: RUF001 (the sign of multiplication)
                categories=tuple(topologies),
                upwards="time / time of reading a local shard",
                series=series(_names(key.implementation for key in here), points),
                label=multiple,
                log=True,
                even=1.0,
            ),
            _evidence(here, timing),
        )
    return Group(
        "devices",
        "Time of `x[0]`, by topology",
        "Time of `x[0]` divided by the time of reading a local shard.",
        tuple(figures),
    )


def moved_figures(results: Results) -> Group:
    """Return a chart per access and topology: the bytes moved, in multiples of the result."""
    figures = []
    for clause in (id for id in ACCESSES if id in results.clauses):
        cells = moved_in(results, clause)
        versions = _versions(key.target for key in cells)
        for topology in sorted({key.topology for key in cells}, key=topology_order)[-1:]:
            points = [
                (key.implementation, versions.index(key.target), value, value, value)
                for key, one in cells.items()
                if key.topology == topology
                for value in [one.per_result]
            ]
            title = plain(ACCESSES[clause])
            figures += figure(
                Chart(
                    key=f"moved-{safe_name(clause)}-{topology}",
                    title=f"{title}, {topology}",
                    description="",
                    across=JAX,
                    categories=tuple(target.jax or "?" for target in versions),
                    upwards="bytes sent / bytes of the result",
                    series=series(_names(key.implementation for key in cells), points),
                    label=multiple,
                ),
                Link(title, clause_path(clause)),
            )
    return Group(
        "moved",
        "Bytes moved between devices to read a part of a pmap output",
        "Bytes that the compiled program sends to each device, divided by the bytes of the "
        "result. 0× means that nothing is sent between devices; data may still pass through "  # noqa: RUF001
        "the host, for example in `for row in x` under new pmap. More than 1× means that data "  # noqa: RUF001
        "is sent that the result does not need.",
        tuple(figures),
    )


def memory_figures(measured: Memory) -> Group:
    """Return a chart per kind of donated argument: the memory peak, by version."""
    figures = []
    implementations = [name for name, _ in measured.implementations]
    for table in measured.tables:
        points = [
            (implementation, at, float(one.multiple), float(one.multiple), float(one.multiple))
            for at, row in enumerate(table.rows)
            for implementation, one in zip(implementations, row.figures, strict=True)
            if one is not None and one.multiple
        ]
        links = [one for row in table.rows for one in row.figures if one is not None]
        figures += figure(
            Chart(
                key=table.anchor,
                title=f"{table.what.rstrip(',')}, {table.topology}",
                description="",
                across=JAX,
                categories=tuple(row.label.removeprefix("jax ") for row in table.rows),
                upwards="peak memory / size of the argument",
                series=series(_names(implementations), points),
                label=multiple,
                even=1.0,
                missing={
                    (implementation_words(name), at): one.missing if one else "does not apply"
                    for at, row in enumerate(table.rows)
                    for name, one in zip(implementations, row.figures, strict=True)
                },
            ),
            Link(table.what, links[0].href if links else ""),
        )
    return Group(
        "memory",
        "Memory of a call with an argument, donated or not",
        "Peak memory during a call, divided by the size of the argument. 1× means no copy, 2× one "  # noqa: RUF001
        "copy beside the original. On 1x8, figures from 2× to 2.5× are equal within the error.",  # noqa: RUF001
        tuple(figures),
    )


def _without(
    results: Results,
    taken: Mapping[TimingKey, Timing],
    timing: str,
    topology: str,
    versions: Sequence[TargetKey],
) -> dict[tuple[str, int], str]:
    """Return why an implementation has no time in a version, from the test beside the times."""
    clauses = next((t.illustrates for k, t in taken.items() if k.timing == timing), ())
    why: dict[tuple[str, int], str] = {}
    for name, words in _names(key.implementation for key in taken).items():
        for at, target in enumerate(versions):
            some = [
                t
                for k, t in taken.items()
                if (k.timing, k.topology, k.target, k.implementation)
                == (timing, topology, target, name)
            ]
            if Where(name, target.jax or "") in removed(results):
                why[words, at] = ABSENT[Verdict.REMOVED]
            elif some and some[0].failed:
                how = worded(some[0].failed).removeprefix(f"{Verdict.KNOWN_DEVIATION.value}: ")
                why[words, at] = f"{_FAILED}{how}"
            elif clauses:
                outcome = results.outcome(CellKey(clauses[0], target, name, topology))
                why[words, at] = happened(outcome)
    return why


def figure(chart: Chart, evidence: Link) -> list[Drawn]:
    """Return the chart with its numbers in a sentence; nothing if nothing was measured."""
    if not any(one.points for one in chart.series):
        return []
    text = "; ".join(
        f"{one.name}: "
        + ", ".join(f"{chart.label(p.value)} at {chart.categories[p.at]}" for p in one.points)
        for one in chart.series
    )
    return [Drawn(replace(chart, description=f"{chart.upwards}. {text}."), evidence)]


def _evidence(taken: Mapping[TimingKey, Timing], timing: str) -> Link:
    illustrated = next((t.illustrates for k, t in taken.items() if k.timing == timing), ())
    return Link("evidence", clause_path(illustrated[0])) if illustrated else Link("", "")


def _names(implementations: Iterable[str]) -> dict[str, str]:
    return {one: implementation_words(one) for one in implementations}


def _versions(targets: Iterable[TargetKey]) -> list[TargetKey]:
    return sorted(set(targets), key=lambda one: (version_order(one.jax or ""), repr(one)))


def multiple(value: float) -> str:
    """Format a ratio with two digits, without exponent."""
    if value >= 100:
        return f"{value:.0f}×"  # noqa: RUF001 (the sign of multiplication)
    return f"{float(f'{value:.2g}'):g}×"  # noqa: RUF001
