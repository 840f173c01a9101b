"""The controller's view of one worker: what it has sent, and whether it is sound.

A worker may send anything, so only valid messages are used; after an invalid one the worker is in
trouble, and its cluster with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformance.spec import observation
from conformance.worker.channel import Channel, ProtocolError

FLOOD_BYTES = 64 * 1024 * 1024  # of output of one process during one case


class TroubleKind(StrEnum):
    """What went wrong with a worker, in the words that follow “process 0”."""

    CLOSED = "closed its connection"
    RAISED = "raised to the top"
    INVALID = "sent an invalid message"
    UNEXPECTED = "sent an unexpected message"
    NO_OBSERVATION = "reported itself ready without an observation"
    FLOODED = "flooded its output"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why to stop waiting for a worker; `detail` is what the kind does not say."""

    kind: TroubleKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)


@dataclass
class WorkerConnection:
    """One worker; `channel` is None until it has connected, `trouble` says why to stop waiting for
    it, `unharmed` whether its process is as it was before the case.
    """

    index: int
    channel: Channel | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    observation: Mapping[str, Any] | None = None
    ready: bool = False
    unharmed: bool = False
    trouble: Trouble | None = None
    mapped: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    in_step: str = ""

    def begin(self, order: Mapping[str, Any]) -> None:
        """Send a case, and clear the state of the one before."""
        assert self.channel is not None
        self.observation, self.ready, self.trouble = None, False, None
        self.unharmed = False
        self.mapped.clear()
        self.finished.clear()
        self.in_step = ""
        try:
            self.channel.send(order)
        except OSError:
            self.trouble = Trouble(TroubleKind.CLOSED)

    def take(self, case: str | None) -> None:
        """Receive one message: of the running `case`, or of the cluster's start if None."""
        assert self.channel is not None
        try:
            message = self.channel.receive()
        except EOFError:
            self.trouble = Trouble(TroubleKind.CLOSED)
            return
        except ProtocolError as error:
            self.trouble = Trouble(TroubleKind.INVALID, str(error))
            return
        if "failed" in message:
            last = str(message["failed"]).strip().splitlines()[-1]
            self.trouble = Trouble(TroubleKind.RAISED, last)
        elif case is None and isinstance(message.get("ready"), dict):
            self.facts, self.ready = message["ready"], True
        elif case is None or message.get("case") != case or not self._fits(message):
            self.trouble = Trouble(TroubleKind.UNEXPECTED, str(message)[:200])

    def look_for_flood(self, written: int) -> None:
        """Put the worker in trouble if it has `written` more than any probe should."""
        if written > FLOOD_BYTES:
            self.trouble = Trouble(TroubleKind.FLOODED, f"{written} bytes")

    def _fits(self, message: Mapping[str, Any]) -> bool:
        """Store a message of the running case; return whether it is valid there."""
        if isinstance(message.get("mapped"), str):
            self.mapped.append(message["mapped"])
        elif isinstance(message.get("step"), str) and isinstance(message.get("ended"), bool):
            if message["ended"]:
                self.finished.append(message["step"])
            self.in_step = "" if message["ended"] else message["step"]
        elif is_observation(message, self.index):
            self.observation = message["observation"]
        elif message.get("ready") is True:
            self.ready = self.observation is not None
            self.unharmed = message.get("unharmed") is True
            if not self.ready:
                self.trouble = Trouble(TroubleKind.NO_OBSERVATION)
        else:
            return False
        return True


def is_observation(message: Mapping[str, Any], index: int) -> bool:
    """Return whether a worker's message holds a valid observation of process `index`.

    A message can come from a process that a probe has damaged, so its fields are checked, and any
    error of reading it means that it is not valid.
    """
    seen: Any = message.get("observation")
    try:
        observation.parse(seen)
        outcomes = {step["outcome"] for step in seen["steps"]}
        return (
            bool(seen["process"] == index)
            and float(seen["seconds"]) >= 0
            and float(seen.get("cpu_seconds", 0.0)) >= 0
            and outcomes <= {observation.RETURNED, observation.RAISED}
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return False
