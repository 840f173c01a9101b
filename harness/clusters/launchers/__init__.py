"""Ways to get N worker commands started; nothing else of the harness depends on which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conformance.probing.starving import Delays
from harness.clusters.output import Evidence


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: `code` is its exit status, negative for the signal that killed it."""

    process: int
    code: int


class Port(Protocol):
    """Where process 0 of a cluster listens: kept free for it until `close`."""

    @property
    def address(self) -> str:
        """`HOST:PORT`, as all processes of the cluster reach it."""

    def close(self) -> None:
        """Give it back."""


class Started(Protocol):
    """The processes of one cluster, as their launcher sees them, in the order of their index.

    TargetDown from any of them where the launcher has lost some; `evidence` and `lost` still tell
    what is known.
    """

    def exits(self) -> list[Exit]:
        """Those that have ended, the first to end first. Does not wait."""

    def mark(self) -> None:
        """A case begins: what the processes write from here on is its own."""

    def written(self) -> list[int]:
        """Bytes of output of each process since the case began."""

    def delays(self) -> list[Delays]:
        """Seconds that each thread of each process could have run and had no core (`starving`)."""

    def evidence(self, running: Sequence[int]) -> list[Evidence]:
        """What each process wrote; those named are asked for their Python stacks before."""

    def lost(self) -> Mapping[int, str]:
        """Processes of which nothing more can be known, each with how that came."""

    def host(self, process: int) -> str:
        """The name of the host that it runs on; empty for this machine."""

    def kill(self, timeout_s: float) -> bool:
        """End all of them, with everything they started; whether all were gone in time."""


class Launcher(Protocol):
    """Starts workers of one target. TargetDown where the target itself does not come up."""

    def warm_up(self) -> None:
        """Make ready to start workers at once, if it is not."""

    def devices(self, platform: str) -> Sequence[Sequence[str]]:
        """The ids of the devices of a platform, of each host that it starts workers on."""

    def reserve(self) -> Port:
        """A port on the machine of process 0."""

    def start(self, settings: Sequence[Mapping[str, Any]]) -> Started:
        """Start one worker per settings (see `worker.run`), process 0 first.

        Where its controller is, and where it writes, the launcher adds.
        """

    def close(self) -> None:
        """End everything this launcher started."""


class TargetDown(Exception):
    """A target's interpreter did not come up, or went away."""
