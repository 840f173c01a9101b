"""The controller's end of a process that forks workers: a zygote here, an agent elsewhere.

Orders go out, answers and exit statuses come back over one connection; exits are noted whenever
something is received. Each message must answer an order or report one worker's end, once, so that a
peer that floods the controller is cut off at the first other message.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from conformance.worker.channel import Channel, ProtocolError
from conformance.worker.deadlines import KILL_S
from harness.clusters.launchers.answers import fits, is_status

MOST_SHOWN = 200  # characters of what was sent
GONE = "it went away"


class HostGone(Exception):
    """The connection ended, or an answer did not come or was invalid; the text says which."""


class Host:
    """The other end of `channel`; any method raises HostGone once it is lost."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Channel | None = channel
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._exits: dict[str, int] = {}
        self._asked: dict[int, dict[str, Any]] = {}  # orders without an answer yet
        self._running: set[str] = set()  # places of workers that have not ended

    @property
    def gone(self) -> bool:
        """Return whether the connection is known to be lost."""
        return self._channel is None

    def tell(self, do: str, **order: Any) -> None:
        """Send an order that has no answer."""
        self._send({"do": do, **order})

    def ask(self, do: str, **order: Any) -> int:
        """Send an order; return the number that identifies its answer."""
        number = next(self._numbers)
        self._asked[number] = {"do": do, **order}
        if do == "spawn":  # it may end before its answer is read
            self._running.add(order["worker"]["place"])
        self._send({"do": do, "ask": number, **order})
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to an order."""
        while number not in self._answers:
            self._receive()
        return self._answers.pop(number)

    def exits(self) -> dict[str, int]:
        """Return exit statuses by place of workers that ended, in the order in which they ended.

        HostGone if the host's agent is lost.
        """
        if self._channel is None:
            raise HostGone(GONE)
        while self._channel is not None and self._channel.waiting():
            self._receive()
        return self._exits

    def forget(self, *places: str) -> None:
        """Drop all state of these workers, here and on the host."""
        for place in places:
            self._exits.pop(place, None)
        self.tell("forget", places=list(places))

    def close(self) -> None:
        """Close the connection, which ends the process and its workers."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._channel is None:
            raise HostGone(GONE)
        try:
            self._channel.send(message)
        except OSError as error:
            self.close()
            raise HostGone(GONE) from error

    def _receive(self) -> None:
        if self._channel is None:
            raise HostGone(GONE)
        try:
            if not self._channel.waiting(KILL_S):
                raise HostGone(f"it did not answer within {KILL_S:g} s")
            self._take(self._channel.receive())
        except EOFError as error:
            self.close()
            raise HostGone(GONE) from error
        except ProtocolError as error:
            self.close()
            raise HostGone(f"it sent an invalid message: {error}") from error
        except HostGone:
            self.close()
            raise

    def _take(self, message: Mapping[str, Any]) -> None:
        """Record an exit or an answer; HostGone if the message is neither."""
        place, number = message.get("exited"), message.get("answer")
        if isinstance(place, str) and place in self._running and is_status(message.get("status")):
            self._running.remove(place)
            self._exits[place] = message["status"]
        elif type(number) is int and number in self._asked and fits(self._asked[number], message):
            del self._asked[number]
            self._answers[number] = dict(message)
        else:
            raise HostGone(f"it sent an unexpected message: {str(message)[:MOST_SHOWN]}")
