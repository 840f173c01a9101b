"""What stopped a case, and where each of its processes then was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.catalogue.topology import Topology


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a process was when its cluster faulted: its finished steps, and the one it was in.

    `signal` or `exit` say how it ended, where it had.
    """

    process: int
    finished: tuple[str, ...]
    in_step: str
    signal: str | None = None
    exit: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What stopped a case: `kind` is `crashed` or `hung`, `detail` says which process and how.

    `mapped` are the kinds of the maps that the processes had made by then; of `processes` the one
    that ended or stalled first is the first.
    """

    kind: str
    detail: str
    mapped: tuple[str, ...] = ()
    processes: tuple[Whereabouts, ...] = ()


def everyone(topology: Topology) -> Iterable[int]:
    """Every process."""
    return range(topology.processes)


def all_but_the_last(topology: Topology) -> Iterable[int]:
    """Every process but the last."""
    return range(topology.processes - 1)
