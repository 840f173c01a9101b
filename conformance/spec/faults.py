"""What ended a case early, and where each of its processes was then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.spec.texts import described
from conformance.spec.topology import Topology


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a process was when its cluster failed: its finished steps, and the current one.

    `signal` or `exit` say how it ended, if it had.
    """

    process: int
    finished: tuple[str, ...]
    in_step: str
    signal: str | None = None
    exit: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What ended a case: `kind` is `crashed` or `hung`, `detail` says which process and how.

    `mapped` are the kinds of the maps that the processes had made; the first of `processes` is the
    one that ended or stalled first.
    """

    kind: str
    detail: str
    mapped: tuple[str, ...] = ()
    processes: tuple[Whereabouts, ...] = ()


@described("every process")
def everyone(topology: Topology) -> Iterable[int]:
    """Return every process."""
    return range(topology.processes)


@described("every process but the last")
def all_but_the_last(topology: Topology) -> Iterable[int]:
    """Return every process but the last."""
    return range(topology.processes - 1)
