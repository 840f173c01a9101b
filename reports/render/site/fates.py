"""What happens to donated arguments.

Read from the steps whose memory note says how many donated buffers were reused; the note also says
whether JAX deleted the arguments, and the step contains the warnings. All cells of a clause note
one kind of argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from conformance.model.records import TargetKey
from reports.analysis.effects.happened import ABSENT, RETURNS, happened
from reports.render.site.memory import Notes, noted
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results
from reports.store.shown import ONE, SEVERAL, processes

REUSED = "reused"  # of a note of memory: [the donated buffers that are an output's, all of them]
DELETED = "donated deleted"  # of a step's notes: of each donated array, whether it is


class Met(NamedTuple):
    """What happened to a kind of argument in a cell, in order of preference."""

    order: int
    words: str


@dataclass(frozen=True, slots=True)
class Fate:
    """Arguments with the same outcome: with one process, with several, and in memory."""

    arguments: tuple[str, ...]
    one: str
    several: str
    peak: str


def fates(
    results: Results,
    clauses: Iterable[str],
    target: TargetKey,
    place: str,
    notes_in: Notes,
    peaks: Mapping[str, str],
) -> tuple[Fate, ...]:
    """Return the outcomes under the implementation `place`, the preferred ones first.

    `peaks` are the memory figures of an argument, in words. Topologies with several processes are
    listed separately if they differ.
    """
    met: dict[str, dict[str, dict[Met, list[str]]]] = {}
    for clause, what in _arguments(results, clauses, notes_in).items():
        for topology in results.grid[clause]:
            found = _met(results.outcome(CellKey(clause, target, place, topology)), what)
            if found is not None:
                there = met.setdefault(what, {}).setdefault(processes(topology), {})
                seen = there.setdefault(found, [])
                seen += [topology] if topology not in seen else []
    alike: dict[tuple[str, str, str], list[str]] = {}
    for what in sorted(met, key=lambda what: _rank(met[what])):
        one, several = (_words(met[what].get(where, {})) for where in (ONE, SEVERAL))
        alike.setdefault((one, several, peaks.get(what, "")), []).append(what)
    return tuple(Fate(tuple(some), *words) for words, some in alike.items())


def _rank(met: Mapping[str, Mapping[Met, list[str]]]) -> tuple[object, ...]:
    """Sort key: the worst outcome, then how widely it was run."""
    some = [one for there in met.values() for one in there]
    width = sum(len(topologies) for there in met.values() for topologies in there.values())
    return max(some).order, -width


def _words(there: Mapping[Met, list[str]]) -> str:
    if len(there) < 2:
        return "".join(one.words for one in there)
    return "; ".join(f"on {', '.join(where)} {one.words}" for one, where in sorted(there.items()))


def _arguments(results: Results, clauses: Iterable[str], notes_in: Notes) -> dict[str, str]:
    """Return the clauses that looked at donated buffers, and at whose."""
    wanted, found = frozenset(clauses), {}
    for key, outcome in results.outcomes.items():
        if key.clause in wanted and key.clause not in found and outcome.runs:
            for note in notes_in(outcome.runs[-1].cell):
                if REUSED in note:
                    found[key.clause] = str(note["what"])
    return found


def _met(outcome: Outcome, what: str) -> Met | None:
    """Return what happened to the argument; None if the cell does not say."""
    if outcome.verdict in ABSENT:
        return None
    ended = happened(outcome)
    if ended != RETURNS:
        return Met(4, ended)
    there = noted(outcome.runs[-1].cell)
    seen = [_in_step(step, note) for step, note in there if note["what"] == what and REUSED in note]
    return max(seen, default=None)  # of calls and processes that differ, the worst


def _in_step(step: Mapping[str, Any], note: Mapping[str, Any]) -> Met:
    """Return what one call did with it."""
    reused, there = note[REUSED]
    deleted = step["extra"].get(DELETED)
    gone = isinstance(deleted, list) and bool(deleted) and all(deleted)
    how = "with a warning" if step.get("warnings") else "silently"
    if reused == there:
        return Met(0, f"donated without a copy{', and deleted' if gone else '; not deleted'}")
    if reused:
        return Met(1, "donated in part")
    if gone:
        return Met(2, f"copied, and the original deleted, {how}")
    return Met(3, f"not donated, {how}; the original stays")
