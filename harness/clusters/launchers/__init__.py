"""Launchers: ways to start N worker processes, behind one interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conformance.worker.output import Evidence
from conformance.worker.starving import Delays


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: `code` is its exit status, negative for the signal that killed it."""

    process: int
    code: int


class Port(Protocol):
    """The coordinator's address, on process 0's machine; reserved until `close`."""

    @property
    def address(self) -> str:
        """`HOST:PORT`, as all processes of the cluster reach it."""

    def close(self) -> None:
        """Release the port."""


class Started(Protocol):
    """The processes of one cluster as their launcher sees them, ordered by index.

    Any method raises TargetDown if the launcher has lost some of them; `evidence` and `lost` still
    return what is known.
    """

    def exits(self) -> list[Exit]:
        """Return the processes that have ended, in the order in which they ended; does not wait."""

    def mark(self) -> None:
        """Mark the start of a case: output from here on belongs to it."""

    def written(self) -> list[int]:
        """Return the bytes that each process has written since the case began."""

    def delays(self) -> list[Delays]:
        """Return the seconds that each thread of each process was runnable but had no core
        (`starving`).
        """

    def evidence(self, running: Sequence[int]) -> list[Evidence]:
        """Return what each process wrote; the `running` ones first write their Python stacks."""

    def lost(self) -> Mapping[int, str]:
        """Return the processes that can no longer be observed, each with the reason."""

    def host(self, process: int) -> str:
        """Return the name of the host that a process runs on; empty for this machine."""

    def kill(self, timeout_s: float) -> bool:
        """End all processes and their descendants; return whether all were gone in time."""


class Launcher(Protocol):
    """Starts workers of one target; TargetDown if the target itself cannot run."""

    def warm_up(self) -> None:
        """Prepare for starting workers at once."""

    def devices(self, platform: str) -> Sequence[Sequence[str]]:
        """Return the ids of a platform's devices on each host that workers start on."""

    def reserve(self) -> Port:
        """Reserve a port on the machine of process 0."""

    def start(self, settings: Sequence[Mapping[str, Any]]) -> Started:
        """Start one worker per settings (see `worker.run`), process 0 first.

        The launcher adds the controller's address and the files that the worker writes to.
        """

    def close(self) -> None:
        """End everything that this launcher started."""


class TargetDown(Exception):
    """A target's interpreter failed to start, or ended."""
