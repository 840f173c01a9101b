"""A process that forks workers, as the controller sees it: a zygote here, an agent elsewhere.

Orders go out, answers and exit statuses come back over one connection; what ended meanwhile is
noted whenever something is received.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from harness.clusters.channel import Channel, Rubbish
from harness.clusters.deadlines import KILL_S


class HostGone(Exception):
    """The connection to it ended, or it does not answer."""


class Host:
    """The other end of `channel`; HostGone from any method once it is gone."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Channel | None = channel
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._exits: dict[str, int] = {}

    @property
    def gone(self) -> bool:
        """Whether it was found to be gone."""
        return self._channel is None

    def tell(self, do: str, **order: Any) -> None:
        """Send an order that has no answer."""
        self._send({"do": do, **order})

    def ask(self, do: str, **order: Any) -> int:
        """Send an order; the number by which its answer is fetched."""
        number = next(self._numbers)
        self._send({"do": do, "ask": number, **order})
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to an order."""
        while number not in self._answers:
            self._receive()
        return self._answers.pop(number)

    def exits(self) -> dict[str, int]:
        """Exit status by place of the workers that ended, in the order in which they ended."""
        if self._channel is None:
            raise HostGone
        while self._channel is not None and self._channel.waiting():
            self._receive()
        return self._exits

    def forget(self, *places: str) -> None:
        """These workers are done with, here and there."""
        for place in places:
            self._exits.pop(place, None)
        self.tell("forget", places=list(places))

    def close(self) -> None:
        """End the connection, which is the order to die."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._channel is None:
            raise HostGone
        try:
            self._channel.send(message)
        except OSError as error:
            self.close()
            raise HostGone from error

    def _receive(self) -> None:
        if self._channel is None:
            raise HostGone
        try:
            if not self._channel.waiting(KILL_S):
                raise EOFError
            message = self._channel.receive()
            if "exited" in message:
                self._exits[str(message["exited"])] = int(message["status"])
            else:
                self._answers[int(message["answer"])] = message
        except (EOFError, Rubbish, LookupError, TypeError, ValueError) as error:
            self.close()
            raise HostGone from error
