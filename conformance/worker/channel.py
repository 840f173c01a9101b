"""JSON messages over an authenticated connection that the worker opens.

`multiprocessing.connection` gives framing and the HMAC challenge; nothing is ever unpickled. A
worker may send anything, so every message is checked before it is used.
"""

from __future__ import annotations

import itertools
import json
import math
import socket
import struct
import time
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any

from conformance.commandline.limits import parse_address

LARGEST_MESSAGE_BYTES = 64 * 1024 * 1024
PATIENCE_S = 5.0  # for the rest of a message whose beginning is there
# A host that vanishes says nothing: it is asked after a silence, and given up after some questions.
SILENCE_S, QUESTIONS, BETWEEN_QUESTIONS_S = 20, 4, 5

MOST_DIGITS = 40  # of a whole number in a message
MOST_ATTEMPTS, BETWEEN_ATTEMPTS_S = 5, 0.1  # where the controller drops a connection

ADDRESS_VARIABLE = "CONFORMANCE_ADDRESS"
KEY_VARIABLE = "CONFORMANCE_KEY"


class ProtocolError(Exception):
    """An invalid message: too long, not JSON, or not an object."""


class Channel:
    """One end of a connection; messages are JSON objects.

    `patience_s`, if given, bounds how long the rest of a message may take to arrive.
    """

    def __init__(self, connection: Connection, patience_s: float | None = None) -> None:
        self.connection = connection
        _tune(connection, patience_s)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; OSError if the other end is closed."""
        self.connection.send_bytes(json.dumps(message, allow_nan=False).encode())

    def receive(self) -> dict[str, Any]:
        """Return the next message.

        EOFError if the other end is closed, ProtocolError if the message is invalid.
        """
        try:
            data = self.connection.recv_bytes(LARGEST_MESSAGE_BYTES)
        except (EOFError, ConnectionError):
            raise EOFError from None
        except BlockingIOError as error:
            raise ProtocolError("the beginning of a message, and not its rest") from error
        except OSError as error:
            if "end of file" in str(error):
                raise EOFError from None  # it died while it spoke
            raise ProtocolError(f"a message longer than {LARGEST_MESSAGE_BYTES} bytes") from error
        try:
            message = _DECODER.decode(data.decode())
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"{len(data)} bytes that are no JSON: {data[:60]!r}") from error
        if not isinstance(message, dict):
            raise ProtocolError(f"JSON that is no object: {data[:60]!r}")
        return message

    def waiting(self, timeout_s: float = 0.0) -> bool:
        """Return whether a message, or the end of the connection, arrives within `timeout_s`."""
        return self.connection.poll(timeout_s)

    def close(self) -> None:
        """Close the connection; the other end reads its end."""
        self.connection.close()


def open_to_controller(address: str, key: str) -> Channel:
    """Connect to `HOST:PORT`; both ends prove that they know `key`.

    A controller that many processes dial at once may drop a connection, so it is dialled again.
    """
    where = parse_address(address)
    for attempt in itertools.count(1):
        try:
            return Channel(Client(where, authkey=bytes.fromhex(key)))
        except (EOFError, ConnectionResetError, BrokenPipeError):
            if attempt == MOST_ATTEMPTS:
                raise
        time.sleep(BETWEEN_ATTEMPTS_S * attempt)
    raise AssertionError


def authenticate(connection: Connection, key: bytes) -> Channel:
    """Run the controller's side of the challenge; AuthenticationError of multiprocessing if it
    fails.
    """
    deliver_challenge(connection, key)
    answer_challenge(connection, key)
    return Channel(connection, PATIENCE_S)


def _finite(text: str) -> float:
    """Parse a number of a message; ValueError if it is not a finite float."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


# What Python reads beside JSON (NaN, Infinity) would be believed, and compared, far from here.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_finite)


def _tune(connection: Connection, patience_s: float | None) -> None:
    duplicate = socket.socket(fileno=socket.dup(connection.fileno()))
    try:
        # Two small messages in a row would otherwise wait for a delayed acknowledgement, 40 ms.
        duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", SILENCE_S),
            ("TCP_KEEPCNT", QUESTIONS),
            ("TCP_KEEPINTVL", BETWEEN_QUESTIONS_S),
        ):
            if hasattr(socket, option):  # Linux has all of them
                duplicate.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        if patience_s is not None:
            limit = struct.pack("ll", int(patience_s), 0)
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    finally:
        duplicate.close()
