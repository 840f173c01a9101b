"""Ways to get N worker commands started; nothing else of the harness depends on which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: `code` is its exit status, negative for the signal that killed it."""

    process: int
    code: int


class Started(Protocol):
    """The processes of one cluster, as their launcher sees them, in the order of their index."""

    def exits(self) -> list[Exit]:
        """Those that have ended, the first to end first. Does not wait."""

    def dump_stacks(self, processes: Sequence[int]) -> None:
        """Ask processes to write their Python stacks into their stack files."""

    def kill(self, timeout_s: float) -> bool:
        """End all of them, with everything they started; whether all were gone in time."""


class Launcher(Protocol):
    """Starts workers of one target. TargetDown where the target itself does not come up."""

    def start(self, settings: Sequence[Mapping[str, Any]]) -> Started:
        """Start one worker per settings (see `worker.run`), process 0 first."""

    def close(self) -> None:
        """End everything this launcher started."""


class TargetDown(Exception):
    """A target's interpreter did not come up, or went away."""
