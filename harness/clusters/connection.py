"""The controller's view of one worker: what it has sent, and whether it is sound.

A worker may send anything, so only valid messages are used; after an invalid one the worker is in
trouble, and its cluster with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.spec import observation
from conformance.worker.channel import Channel, ProtocolError

FLOOD_BYTES = 64 * 1024 * 1024  # of output of one process during one case

CLOSED = "closed its connection"
RAISED = "raised to the top"


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
    trouble: str | None = None
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
            self.trouble = CLOSED

    def take(self, case: str | None) -> None:
        """Receive one message: of the running `case`, or of the cluster's start if None."""
        assert self.channel is not None
        try:
            message = self.channel.receive()
        except EOFError:
            self.trouble = CLOSED
            return
        except ProtocolError as error:
            self.trouble = f"sent an invalid message: {error}"
            return
        if "failed" in message:
            self.trouble = f"{RAISED}: {str(message['failed']).strip().splitlines()[-1]}"
        elif case is None and isinstance(message.get("ready"), dict):
            self.facts, self.ready = message["ready"], True
        elif case is None or message.get("case") != case or not self._fits(message):
            self.trouble = f"sent an unexpected message: {str(message)[:200]}"

    def look_for_flood(self, written: int) -> None:
        """Put the worker in trouble if it has `written` more than any probe should."""
        if written > FLOOD_BYTES:
            self.trouble = f"flooded its output: {written} bytes"

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
                self.trouble = "reported itself ready without an observation"
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
