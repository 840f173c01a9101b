"""Common patterns under pmap, shard_map and plain jit: values, communication, memory and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from conformance.model.records import JAX, Timing
from conformance.patterns import PATTERNS
from reports.analysis.effects.happened import RETURNS, happened
from reports.analysis.effects.pairs import Effects
from reports.render.measured import MOVED, duration, ratio, times
from reports.render.site.marks import Mark, mark_of
from reports.render.site.memory import notes
from reports.render.site.names import Link, clause_path, implementation_words
from reports.render.site.page import Page
from reports.store.order import MAPS, topology_order, version_order
from reports.store.outcomes import RAN, CellKey, Outcome, TimingKey
from reports.store.results import Results

PAGE = "jit.html"
PIN = "+"  # in the name of a target that pins libraries
NO_COLLECTIVE, NO_MEMORY, NOT_TIMED = "nothing", "not measured", "not timed"
TIMING, BASELINE = "timing.jit.step", "plain jit"

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
    """What one implementation does: a mark of its values or none, and a figure."""

    text: str
    href: str
    jax: str
    mark: Mark | None = None


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
    return JitPage(columns, tuple(newest), *tables)


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
        name = Link(results.clauses[mapped].title, clause_path(mapped))
        places = [*((mapped, each) for each in MAPS), (jitted, JAX)]
        found: dict[tuple[Entry | None, ...], list[str]] = {}
        both = {*results.grid[mapped]} & {*results.grid[jitted]}
        for topology in sorted(both, key=topology_order):
            entries = tuple(entry(results, id, each, topology) for id, each in places)
            if entries[-1] is not None:
                found.setdefault(entries, []).append(topology)
        for at, (entries, topologies) in enumerate(found.items()):
            yield Row(name, ", ".join(topologies), entries, 0 if at else len(found))


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
    return Entry(", ".join(words), clause_path(id), key.target.jax or "", mark_of(values.verdict))


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
    text = f"{max(measured):.1f} x the state" if measured else NO_MEMORY
    return Entry(text, clause_path(id), key.target.jax or "", mark_of(outcome.verdict))


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
    yield Group("1 MiB on each device", tuple(_timed(step, taken.get(TIMING, {}))))
    for subject, pairs in {"Realistic sizes": AT_SIZE, **PATTERNS}.items():
        rows = (
            _timed(
                Link(results.clauses[pair[0]].title, clause_path(pair[0])), taken[of_pairs[pair]]
            )
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
                entries[key.implementation] = Entry(_multiple(one), "", jax)
            elif one.seconds is not None:
                entries[JAX] = Entry(duration(one.seconds.median), "", jax)
        found = tuple(entries.get(each) for each in (*MAPS, JAX))
        yield Row(name, topology, found, 0 if at else len(topologies))


def _multiple(mapped: Timing) -> str:
    to = ratio(mapped, BASELINE)
    return NOT_TIMED if to is None else f"{to.median:.2f} ({to.low:.2f} to {to.high:.2f})"
