"""Common patterns under pmap, shard_map and plain jit: values, communication, memory and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Any

from conformance.model.records import JAX, Timing
from conformance.patterns import PATTERNS
from reports.analysis.effects.happened import RETURNS, happened
from reports.analysis.effects.pairs import Effects
from reports.render.measured import MOVED, duration, ratio, times
from reports.render.site.marks import CHECKED, Mark, mark_of
from reports.render.site.memory import notes
from reports.render.site.names import Link, clause_path, implementation_words
from reports.render.site.page import Page
from reports.store.order import MAPS, topology_order, version_order
from reports.store.outcomes import RAN, CellKey, Outcome, TimingKey
from reports.store.results import Results

PAGE = "jit.html"
PIN = "+"  # in the name of a target that pins libraries
NO_COLLECTIVE, NO_MEMORY, NOT_TIMED = "nothing", "not measured", "not timed"
LARGE_STEP, AT_SIZES = "1 MiB on each device", "Realistic sizes"
TIMING, BASELINE = "timing.jit.step", "plain jit"
TIMED = ("timing.at-size.", "timing.pattern.")  # patterns, each beside its plain jit

AT_SIZE = tuple(
    (f"idioms.at-size.{kernel}", f"idioms.jit-at-size.{kernel}")
    for kernel in (
        "bias",
        "bias-by-einsum",
        "kernel",
        "squares",
        "squares-of-one-product",
        "variance",
        "table",
        "running",
    )
)
CHECKPOINTS = (
    ("idioms.checkpoints.orbax-mapped", "idioms.jit-checkpoints.orbax"),
    ("idioms.checkpoints.orbax-mapped-refused", "idioms.jit-checkpoints.orbax"),
    ("idioms.checkpoints.orbax-one-copy", "idioms.jit-checkpoints.orbax"),
    ("idioms.checkpoints.pickled", "idioms.jit-checkpoints.pickled"),
    ("idioms.checkpoints.flax-bytes", "idioms.jit-checkpoints.flax-bytes"),
)
LARGE = (
    ("idioms.memory.kept", "idioms.jit-memory.kept"),
    ("idioms.memory.donated", "idioms.jit-memory.donated"),
    ("idioms.memory.evaluated", "idioms.jit-memory.evaluated"),
    ("idioms.memory.prefetched", "idioms.jit-memory.prefetched"),
    ("idioms.memory.replicated", "idioms.jit-memory.restored"),
    ("idioms.memory.first-shard", "idioms.jit-memory.first-shard"),
    ("idioms.memory.fetched", "idioms.jit-memory.fetched"),
    ("idioms.memory.row-fetched", "idioms.jit-memory.fetched"),
    ("idioms.memory.whole-numpy", "idioms.jit-memory.whole-numpy"),
    ("idioms.memory.whole-array", "idioms.jit-memory.whole-array"),
    ("idioms.memory.initialised-whole", "idioms.jit-memory.initialised-whole"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one implementation does: a mark of its values or none, and a figure.

    `figure` is the bytes that a step communicates, a multiple of the state, or of a time.
    """

    text: str
    href: str
    jax: str
    mark: Mark | None = None
    figure: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A pattern on topologies of which all entries are equal: an entry per column.

    `span` is the number of the pattern's rows in the first of them, and 0 in the others.
    """

    name: Link
    topology: str
    entries: tuple[Entry | None, ...]
    span: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one subject, which has no name where a table has only one."""

    subject: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class JitPage:
    """The tables by subject; `columns` are the implementations, with plain jit last.

    `newest` is the newest JAX in each column: an entry names its own where that is another.
    """

    columns: tuple[str, ...]
    newest: tuple[str, ...]
    summary: tuple[tuple[str, tuple[str, ...]], ...]
    communication: tuple[Group, ...]
    at_size: tuple[Group, ...]
    checkpoints: tuple[Group, ...]
    memory: tuple[Group, ...]
    time: tuple[Group, ...]


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page, where a plain jit was run."""
    results = effects.results
    view = jit_page(results)
    if view.communication or view.at_size or view.checkpoints or view.memory:
        yield Page(
            PAGE,
            "jit",
            view,
            "pmap, shard_map and plain jit",
            "The same program as a pmap, as a shard_map and as a plain `jax.jit` over sharded "
            "arrays: its values, what a step communicates, the memory at its peak, its time.",
        )


def jit_page(results: Results) -> JitPage:
    """Return the figures of each implementation in the newest JAX that has it."""
    tables = (
        _groups(results, PATTERNS, _communication),
        _groups(results, {"": AT_SIZE}, _ended),
        _groups(results, {"": CHECKPOINTS}, _ended),
        _groups(results, {"": LARGE}, _memory),
        tuple(group for group in _times(results) if group.rows),
    )
    columns = (*(implementation_words(name) for name in MAPS), "plain jit")
    rows = [row for groups in tables for group in groups for row in group.rows]
    newest = (_newest_of(row.entries[at] for row in rows) for at in range(len(columns)))
    return JitPage(columns, tuple(newest), tuple(_summary(*tables)), *tables)


def _summary(
    communication: Sequence[Group],
    at_size: Sequence[Group],
    checkpoints: Sequence[Group],
    memory: Sequence[Group],
    time: Sequence[Group],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the tables come to: a line's name, and its text for each implementation."""
    values = [*zip(*_entries((*communication, *at_size, *checkpoints)), strict=True)]
    yield "Rows with the expected values", tuple(map(_right, values))
    moved = [_beside(rows) for rows in _columns(communication)]
    more, less = (
        tuple(str(sum(sign * (own - jit) > 0 for own, jit in one)) if one else "" for one in moved)
        for sign in (1, -1)
    )
    yield "Rows that communicate more than plain jit", more
    yield "Rows that communicate less than plain jit", less
    taken = [_beside(rows) for rows in _columns(memory)]
    yield (
        "Memory at the peak, in multiples of plain jit's",
        tuple(_spread([own / jit for own, jit in one if jit]) for one in taken),
    )
    large = [one for one in time if one.subject in (LARGE_STEP, AT_SIZES)]
    small = [one for one in time if one not in large]
    for name, groups in (("at realistic sizes", large), ("of a few elements", small)):
        ratios = ([own for own, _ in _beside(rows)] for rows in _columns(groups))
        yield f"Time of a step {name}, in multiples of plain jit's", tuple(map(_spread, ratios))


def _entries(groups: Iterable[Group]) -> list[tuple[Entry | None, ...]]:
    return [row.entries for group in groups for row in group.rows]


def _columns(groups: Iterable[Group]) -> list[list[tuple[Entry | None, Entry | None]]]:
    """By implementation, with plain jit last, its entry and that of plain jit in each row."""
    rows = _entries(groups)
    return [[(row[at], row[-1]) for row in rows] for at in range(len(MAPS) + 1)]


def _beside(rows: Iterable[tuple[Entry | None, Entry | None]]) -> list[tuple[float, float]]:
    return [
        (own.figure, jit.figure)
        for own, jit in rows
        if own and jit and own.figure is not None and jit.figure is not None
    ]


def _right(entries: Iterable[Entry | None]) -> str:
    marks = [one.mark for one in entries if one and one.mark in CHECKED]
    return f"{marks.count(Mark.RIGHT)} of {len(marks)}" if marks else ""


def _spread(ratios: Sequence[float]) -> str:
    """The median with the extremes."""
    if not ratios:
        return ""
    return f"{median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"


def _newest_of(entries: Iterable[Entry | None]) -> str:
    found = (one.jax for one in entries if one is not None and one.jax)
    return max(found, key=version_order, default="")


def plain_jits() -> Iterator[str]:
    """Yield the ids of the clauses of plain jits that are compared with a map."""
    for _, jitted in chain(AT_SIZE, CHECKPOINTS, LARGE, *PATTERNS.values()):
        yield jitted


def _groups(
    results: Results, patterns: Mapping[str, Sequence[tuple[str, str]]], entry: Any
) -> tuple[Group, ...]:
    groups = (
        Group(subject, tuple(_rows(results, pairs, entry))) for subject, pairs in patterns.items()
    )
    return tuple(group for group in groups if group.rows)


def _rows(results: Results, pairs: Sequence[tuple[str, str]], entry: Any) -> Iterator[Row]:
    for mapped, jitted in pairs:
        if mapped not in results.clauses or jitted not in results.clauses:
            continue
        name = _link(results, mapped)
        places = [*((mapped, each) for each in MAPS), (jitted, JAX)]
        found: dict[tuple[Entry | None, ...], list[str]] = {}
        both = {*results.grid[mapped]} & {*results.grid[jitted]}
        for topology in sorted(both, key=topology_order):
            entries = tuple(entry(results, id, each, topology) for id, each in places)
            if entries[-1] is not None:
                found.setdefault(entries, []).append(topology)
        for at, (entries, topologies) in enumerate(found.items()):
            yield Row(name, ", ".join(topologies), entries, 0 if at else len(found))


def _link(results: Results, id: str) -> Link:
    """The pattern's name: what is tested of it stands over the table."""
    return Link(results.clauses[id].title.partition(" in a loop")[0].rstrip(","), clause_path(id))


def _newest(results: Results, id: str, name: str, topology: str) -> tuple[CellKey, Outcome] | None:
    """The cell of the newest JAX in which the clause ran."""
    for target in reversed(results.targets):
        key = CellKey(id, target.key, name, topology)
        outcome = results.outcome(key)
        if outcome.verdict in RAN and PIN not in target.key.target:
            return key, outcome
    return None


def _communication(results: Results, id: str, name: str, topology: str) -> Entry | None:
    found = _newest(results, id, name, topology)
    if found is None:
        return None
    key, values = found
    ended = happened(values)
    moved = collectives(results.outcome(key._replace(clause=f"{id}.no-new-collective")))
    if moved is None and ended == RETURNS:
        moved = collectives(values)
    words = [] if ended == RETURNS and moved is not None else [ended]
    words += [] if moved is None else [collectives_text(moved)]
    mark = mark_of(values.verdict)
    sent = None if moved is None else float(sum(moved.values()))
    return Entry(", ".join(words), clause_path(id), key.target.jax or "", mark, sent)


def collectives(outcome: Outcome) -> Mapping[str, int] | None:
    """The bytes of each collective that the first step compiled, in the process that moved most."""
    found: list[Mapping[str, int]] = []
    for run in outcome.runs[-1:]:
        for observation in run.cell.observations:
            steps = observation.get("steps")
            first = steps[0] if isinstance(steps, list) and steps else {}
            extra = first.get("extra") if isinstance(first, dict) else None
            note = extra.get(MOVED) if isinstance(extra, dict) else None
            one = note.get("collectives") if isinstance(note, dict) else None
            if isinstance(one, dict) and all(type(size) is int for size in one.values()):
                found.append(one)
    return max(found, key=lambda one: sum(one.values()), default=None)


def collectives_text(moved: Mapping[str, int]) -> str:
    """The collectives with their bytes, in words."""
    return ", ".join(f"{kind} {size} B" for kind, size in sorted(moved.items())) or NO_COLLECTIVE


def _ended(results: Results, id: str, name: str, topology: str) -> Entry | None:
    found = _newest(results, id, name, topology)
    if found is None:
        return None
    key, outcome = found
    return Entry(happened(outcome), clause_path(id), key.target.jax or "", mark_of(outcome.verdict))


def _memory(results: Results, id: str, name: str, topology: str) -> Entry | None:
    found = _newest(results, id, name, topology)
    if found is None:
        return None
    key, outcome = found
    measured = [note["multiple"] for note in notes(outcome.runs[-1].cell) if "multiple" in note]
    most = max(measured, default=None)
    text = NO_MEMORY if most is None else f"{most:.1f} x the state"
    return Entry(text, clause_path(id), key.target.jax or "", mark_of(outcome.verdict), most)


def _times(results: Results) -> Iterator[Group]:
    """The time of a mapped step in multiples of the plain jit's, measured side by side."""
    taken: dict[str, dict[TimingKey, Timing]] = {}
    for key, one in times(results).items():
        taken.setdefault(key.timing, {})[key] = one
    of_pairs = {
        tuple(one.illustrates): timing
        for timing, here in taken.items()
        for one in here.values()
        if timing != TIMING
    }
    step = Link("A training step", "")
    yield Group(LARGE_STEP, tuple(_timed(step, taken.get(TIMING, {}))))
    for subject, pairs in {AT_SIZES: AT_SIZE, **PATTERNS}.items():
        rows = (
            _timed(_link(results, pair[0]), taken[of_pairs[pair]])
            for pair in pairs
            if pair in of_pairs and pair[0] in results.clauses
        )
        yield Group(subject, tuple(chain.from_iterable(rows)))


def _timed(name: Link, taken: Mapping[TimingKey, Timing]) -> Iterator[Row]:
    """A row on each topology; the last entry is the time of the plain jit itself."""
    topologies = sorted({key.topology for key in taken}, key=topology_order)
    by_version = sorted(taken, key=lambda key: version_order(key.target.jax or ""))
    for at, topology in enumerate(topologies):
        entries: dict[str, Entry] = {}
        for key in by_version:
            if key.topology != topology:
                continue
            jax, one = key.target.jax or "", taken[key]
            if key.contender != BASELINE:
                entries[key.implementation] = _multiple(one, jax)
            elif one.seconds is not None:
                entries[JAX] = Entry(duration(one.seconds.median), "", jax, figure=1.0)
        found = tuple(entries.get(each) for each in (*MAPS, JAX))
        yield Row(name, topology, found, 0 if at else len(topologies))


def _multiple(mapped: Timing, jax: str) -> Entry:
    to = ratio(mapped, BASELINE)
    if to is None:
        return Entry(NOT_TIMED, "", jax)
    text = f"{to.median:.2f} ({to.low:.2f} to {to.high:.2f})"
    return Entry(text, "", jax, figure=to.median)
