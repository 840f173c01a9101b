"""What becomes of arguments that are donated, told by what happens to them.

Read from the steps whose note of memory says how many of the donated buffers were reused: beside it
stands whether JAX deleted the arguments, and the step has what was warned of. A clause notes one
kind of argument in all its cells, so one that was refused is known by what was noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from conformance.model.records import TargetKey
from reports.effects.changed import ONE, SEVERAL, processes
from reports.effects.happened import ABSENT, RETURNS, happened
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.results import Results
from reports.site.memory import Notes, noted

REUSED = "reused"  # of a note of memory: [the donated buffers that are an output's, all of them]
DELETED = "donated deleted"  # of a step's notes: of each donated array, whether it is


class Met(NamedTuple):
    """What a kind of argument met in a cell; `order`: what is hoped for first."""

    order: int
    words: str


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of arguments that fare alike: with one process, with several, and in memory."""

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
    """The fates under the implementation `place`, what is hoped for first.

    `peaks` are the figures of memory of an argument, in words. Where topologies of several
    processes differ, each has its own words.
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
    """A sort key: by what an argument meets at worst, then those that were run most widely."""
    some = [one for there in met.values() for one in there]
    width = sum(len(topologies) for there in met.values() for topologies in there.values())
    return max(some).order, -width


def _words(there: Mapping[Met, list[str]]) -> str:
    if len(there) < 2:
        return "".join(one.words for one in there)
    return "; ".join(f"on {', '.join(where)} {one.words}" for one, where in sorted(there.items()))


def _arguments(results: Results, clauses: Iterable[str], notes_in: Notes) -> dict[str, str]:
    """The clauses that looked at donated buffers, and at whose."""
    wanted, found = frozenset(clauses), {}
    for key, outcome in results.outcomes.items():
        if key.clause in wanted and key.clause not in found and outcome.runs:
            for note in notes_in(outcome.runs[-1].cell):
                if REUSED in note:
                    found[key.clause] = str(note["what"])
    return found


def _met(outcome: Outcome, what: str) -> Met | None:
    """What the argument met; None where the cell tells nothing of a program."""
    if outcome.verdict in ABSENT:
        return None
    ended = happened(outcome)
    if ended != RETURNS:
        return Met(4, ended)
    there = noted(outcome.runs[-1].cell)
    seen = [_in_step(step, note) for step, note in there if note["what"] == what and REUSED in note]
    return max(seen, default=None)  # of calls and processes that differ, the worst


def _in_step(step: Mapping[str, Any], note: Mapping[str, Any]) -> Met:
    """What one call did with it."""
    reused, there = note[REUSED]
    deleted = step["extra"].get(DELETED)
    gone = isinstance(deleted, list) and bool(deleted) and all(deleted)
    said = "with a warning" if step.get("warnings") else "in silence"
    if reused == there:
        return Met(0, f"taken over without a copy, {'and deleted' if gone else 'not deleted'}")
    if reused:
        return Met(1, "taken over in part")
    if gone:
        return Met(2, f"copied and deleted, {said}")
    return Met(3, f"not taken over, the original stays, {said}")
