"""Common patterns under pmap, shard_map and plain jit: values, communication, memory and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.model.records import JAX
from reports.analysis.effects.happened import happened
from reports.analysis.effects.pairs import Effects
from reports.render.measured import MOVED, ratio, times
from reports.render.site.marks import Mark, mark_of
from reports.render.site.memory import notes
from reports.render.site.names import Link, clause_path, implementation_words
from reports.render.site.page import Page
from reports.store.order import MAPS, topology_order, version_order
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results

PAGE = "jit.html"
PIN = "+"  # in the name of a target that pins libraries
NO_COLLECTIVE, NO_MEMORY, NOT_RUN = "nothing", "not measured", "not run"
TIMING, BASELINE = "timing.jit.step", "plain jit"

# A pattern: the clause of a mapped function, and that of a plain jit which does the same.
PATTERNS = (
    ("idioms.training.pmean", "idioms.jit.descent"),
    ("idioms.training.accumulation", "idioms.jit.accumulation"),
    ("idioms.training.clipping", "idioms.jit.clipping"),
    ("idioms.training.momentum", "idioms.jit.momentum"),
    ("idioms.evaluation.padded", "idioms.jit.padded"),
    ("idioms.evaluation.joined", "idioms.jit.joined"),
    ("idioms.evaluation.batch-norm", "idioms.jit.batch-norm"),
    ("idioms.ensembles.ensemble", "idioms.jit.ensemble"),
    ("idioms.ensembles.ring", "idioms.jit.ring"),
    ("idioms.loops.chains", "idioms.jit.chains"),
    ("idioms.helpers.kernel-chains", "idioms.jit.kernel-chains"),
)
LARGE = (
    ("idioms.memory.kept", "idioms.jit-memory.kept"),
    ("idioms.memory.donated", "idioms.jit-memory.donated"),
    ("idioms.memory.evaluated", "idioms.jit-memory.evaluated"),
    ("idioms.memory.fetched", "idioms.jit-memory.fetched"),
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
    """A pattern on a topology: an entry per column."""

    name: Link
    topology: str
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True, slots=True)
class JitPage:
    """The tables; `columns` are the implementations, with plain jit last."""

    columns: tuple[str, ...]
    communication: tuple[Row, ...]
    memory: tuple[Row, ...]
    time: tuple[Row, ...]


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page, where a plain jit was run."""
    results = effects.results
    view = jit_page(results)
    if view.communication or view.memory:
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
    return JitPage(
        columns=(*(implementation_words(name) for name in MAPS), "plain jit"),
        communication=tuple(_rows(results, PATTERNS, _communication)),
        memory=tuple(_rows(results, LARGE, _memory)),
        time=tuple(_times(results)),
    )


def _rows(results: Results, pairs: Sequence[tuple[str, str]], entry: Any) -> Iterator[Row]:
    for mapped, jitted in pairs:
        if mapped not in results.clauses or jitted not in results.clauses:
            continue
        for topology in sorted(results.grid[jitted], key=topology_order):
            places = [*((mapped, name) for name in MAPS), (jitted, JAX)]
            entries = tuple(entry(results, id, name, topology) for id, name in places)
            if entries[-1] is not None:
                name = Link(results.clauses[mapped].title, clause_path(mapped))
                yield Row(name, topology, entries)


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
    outcome = results.outcome(key._replace(clause=f"{id}.no-new-collective"))
    moved = collectives(outcome)
    text = happened(outcome) if moved is None else collectives_text(moved)
    return Entry(text, clause_path(id), key.target.jax or "", mark_of(values.verdict))


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


def _memory(results: Results, id: str, name: str, topology: str) -> Entry | None:
    found = _newest(results, id, name, topology)
    if found is None:
        return None
    key, outcome = found
    measured = [note["multiple"] for note in notes(outcome.runs[-1].cell) if "multiple" in note]
    text = f"{max(measured):.1f} x the state" if measured else NO_MEMORY
    return Entry(text, clause_path(id), key.target.jax or "", mark_of(outcome.verdict))


def _times(results: Results) -> Iterator[Row]:
    """The time of a mapped step in multiples of the plain jit's, measured side by side."""
    taken = {key: one for key, one in times(results).items() if key.timing == TIMING}
    for topology in sorted({key.topology for key in taken}, key=topology_order):
        entries: list[Entry | None] = []
        for name in MAPS:
            here = [
                (version_order(key.target.jax or ""), key, one)
                for key, one in taken.items()
                if key.topology == topology and key.implementation == name
                if key.contender != BASELINE
            ]
            if not here:
                entries.append(None)
                continue
            _, key, one = max(here, key=lambda each: each[0])
            to = ratio(one, BASELINE)
            text = NOT_RUN if to is None else f"{to.median:.2f} ({to.low:.2f} to {to.high:.2f})"
            entries.append(Entry(text, "times.html", key.target.jax or ""))
        yield Row(Link("A training step of 1 MiB", ""), topology, (*entries, Entry("1", "", "")))
