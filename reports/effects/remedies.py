"""Where a remedy works: a clause shows what to do instead, its cells whether that helps.

Pages tell it in words of their own; what works and what does not is said here alone.
"""

from __future__ import annotations

from typing import NamedTuple

from reports.reading.outcomes import CellKey
from reports.reading.records import TargetKey
from reports.reading.results import Results
from reports.reading.verdicts import Verdict

FAILED = (Verdict.DEVIATES, Verdict.KNOWN_DEVIATION, Verdict.FLAKY)
_DIED = (Verdict.CRASHED, Verdict.HUNG)


class Fared(NamedTuple):
    """How a remedy fared under an implementation in one JAX, by topology.

    `refused`: what is expected there is an error, so that "works" means that it raises.
    """

    works: tuple[str, ...]
    fails: tuple[str, ...]
    not_run: tuple[str, ...]
    refused: bool


def fared(results: Results, clause: str, implementation: str, target: TargetKey) -> Fared:
    """Where a remedy works, where it fails, and where it was not run."""
    places: dict[Verdict, list[str]] = {}
    for topology in results.grid[clause]:
        key = CellKey(clause, target, implementation, topology)
        places.setdefault(results.outcome(key).verdict, []).append(topology)

    def on(*verdicts: Verdict) -> tuple[str, ...]:
        held = {where for verdict in verdicts for where in places.get(verdict, ())}
        return tuple(where for where in results.grid[clause] if where in held)

    expected = results.clauses[clause].expected.get(implementation, "")
    return Fared(
        works=on(Verdict.CONFORMS),
        fails=on(*FAILED, *_DIED),
        not_run=on(Verdict.NOT_RUN, Verdict.UNKNOWN),
        refused="raises" in expected,
    )
