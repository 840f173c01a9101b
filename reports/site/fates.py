"""What becomes of arguments that are donated, told by what happens to them.

Read from the steps whose note of memory says how many of the donated buffers were reused: beside it
stands whether JAX deleted the arguments, and the step has what was warned of. A clause notes one
kind of argument in all its cells, so one that was refused is known by what was noted elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from reports.effects.changed import processes
from reports.effects.happened import RETURNS, happened
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import TargetKey
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.memory import Notes, noted

REUSED = "reused"  # of a note of memory: [the donated buffers that are an output's, all of them]
DELETED = "donated deleted"  # of a step's notes: of each donated array, whether it is
MOST = 5  # arguments that are named of one fate


class Met(NamedTuple):
    """What a kind of argument met in a cell; `order`: what is hoped for first."""

    order: int
    words: str


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of some kinds of arguments, `where`: with one process or with several."""

    where: str
    words: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        more = len(self.arguments) - MOST
        named = ", ".join(self.arguments[:MOST])
        return f"{self.words}: {named}" + (f" and {more} more" if more > 0 else "")


def fates(
    results: Results, clauses: Iterable[str], target: TargetKey, place: str, notes_in: Notes
) -> tuple[Fate, ...]:
    """The fates under the implementation `place`: of one process, then of several.

    Arguments are in the order of how widely they were run; one that meets several fates with
    several processes has the topologies beside it.
    """
    met: dict[tuple[str, Met], dict[str, list[str]]] = {}
    for clause, what in _arguments(results, clauses, notes_in).items():
        for topology in results.grid[clause]:
            found = _met(results.outcome(CellKey(clause, target, place, topology)), what)
            if found is not None:
                seen = met.setdefault((processes(topology), found), {}).setdefault(what, [])
                seen += [topology] if topology not in seen else []
    return tuple(
        Fate(where, one.words, tuple(_named(arguments, where, met)))
        for (where, one), arguments in sorted(met.items(), key=lambda item: item[0])
    )


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
    if outcome.verdict in (Verdict.REMOVED, Verdict.NOT_APPLICABLE, Verdict.NOT_RUN):
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


def _named(
    arguments: Mapping[str, list[str]],
    where: str,
    met: Mapping[tuple[str, Met], Mapping[str, list[str]]],
) -> Iterator[str]:
    width = Counter(what for some in met.values() for what in some for _ in some[what])
    for what, topologies in sorted(arguments.items(), key=lambda item: -width[item[0]]):
        others = sum(what in some for (there, _), some in met.items() if there == where)
        yield f"{what} (on {', '.join(topologies)})" if others > 1 else what
