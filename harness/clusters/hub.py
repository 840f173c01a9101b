"""The listener to which workers, zygotes and the agents of other hosts connect.

One listener for the whole controller. Every connection is authenticated in a thread of its own, so
that a silent client blocks nobody else; after that it announces which place it fills. Clients that
have not yet proved the key can use only a bounded part of this process, for a bounded time.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from typing import Any

from conformance.commandline.ending import reason
from conformance.worker.channel import Channel, authenticate
from conformance.worker.deadlines import HANDSHAKE_S

MOST_UNPROVEN = 256  # connections that have not shown the key yet
DESCRIPTORS_OF_ONE = 2  # of such a connection, while it shows the key
SHARE_OF_DESCRIPTORS = 4  # of those that this process may have, one part in so many
PAUSE_S = 0.1  # before the next connection, where one could not be taken
SAID_AGAIN_S = 10.0  # between two lines of one kind
ENDS_LISTENING = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)  # it was closed


class Hub:
    """A listener on `host`; workers need `address` and `key` (hexadecimal) to connect.

    Rejected connections are reported to `refused`, one line each. If more than `unproven`
    connections have not proved the key, the oldest are dropped.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        refused: Callable[[str], None] = lambda _: None,
        unproven: int | None = None,
    ) -> None:
        self._key = bytes.fromhex(key) if key else secrets.token_bytes(32)
        self._socket = socket.create_server((host, port), backlog=1024)
        self._arrived: dict[str, deque[tuple[Channel, dict[str, Any]]]] = {}
        self._changed = threading.Condition()
        self._refused = refused
        self._most_unproven = most_unproven() if unproven is None else unproven
        self._unproven: dict[Connection, float] = {}  # and since when, the oldest first
        self._lock = threading.Lock()
        self._said: dict[str, float] = {}
        self._closed = False
        self.port: int = self._socket.getsockname()[1]
        self.address = f"{host}:{self.port}"
        self.key = self._key.hex()
        threading.Thread(target=self._accept, name="hub", daemon=True).start()
        threading.Thread(target=self._watch, name="hub's watch", daemon=True).start()

    def wait_for(self, place: str, timeout_s: float) -> tuple[Channel, dict[str, Any]] | None:
        """Return the channel of the process that announced `place`, with its hello; None after
        `timeout_s`.

        If several announced it, each channel is returned once, in the order of arrival.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while place not in self._arrived:
                left = deadline - time.monotonic()
                if left <= 0 or not (self._changed.wait(left) or place in self._arrived):
                    return None
            waiting = self._arrived[place]
            first = waiting.popleft()
            if not waiting:
                del self._arrived[place]
            return first

    def close(self) -> None:
        """Stop listening; channels that were handed out stay open."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake `accept`
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, (peer, *_) = self._socket.accept()
            except OSError as error:
                if self._closed or error.errno in ENDS_LISTENING:
                    return
                self._make_room(f"a connection could not be taken: {reason(error)}")
                continue
            client.settimeout(None)
            connection = Connection(client.detach())
            self._note(connection)
            try:
                threading.Thread(target=self._admit, args=(connection, peer), daemon=True).start()
            except (RuntimeError, MemoryError) as error:  # there are too many threads
                self._forget(connection)
                connection.close()
                self._make_room(f"a connection from {peer} could not be taken: {reason(error)}")

    def _note(self, connection: Connection) -> None:
        """Count a connection that has not proved the key; drop the oldest if there are too many."""
        with self._lock:
            self._unproven[connection] = time.monotonic()
            many = len(self._unproven) - self._most_unproven
        if many > 0:
            self._drop(many)
            self._say(
                f"more than {self._most_unproven} connections have not shown the key: the oldest "
                "are dropped"
            )

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            self._unproven.pop(connection, None)

    def _make_room(self, why: str) -> None:
        """Drop half of the connections that have not proved the key, then wait a moment."""
        with self._lock:
            half = (len(self._unproven) + 1) // 2
        self._drop(half)
        self._say(f"{why}; listening goes on")
        time.sleep(PAUSE_S)

    def _drop(self, count: int) -> None:
        """Cut off the oldest connections that have not proved the key; their threads close them."""
        with self._lock:
            for one in list(self._unproven)[:count]:
                del self._unproven[one]
                _shut(one)

    def _watch(self) -> None:
        """Cut off connections that stall in the handshake, so that none holds a thread for long."""
        while not self._closed:
            time.sleep(min(1.0, HANDSHAKE_S / 2))
            late = time.monotonic() - HANDSHAKE_S
            with self._lock:
                count = sum(1 for since in self._unproven.values() if since <= late)
            if count:
                self._drop(count)

    def _say(self, line: str) -> None:
        """Report a line, limiting repetitions of the same line."""
        now = time.monotonic()
        if now - self._said.get(line, -SAID_AGAIN_S) >= SAID_AGAIN_S:
            self._said[line] = now
            self._refused(line)

    def _admit(self, connection: Connection, peer: str) -> None:
        try:
            channel = authenticate(connection, self._key)
            hello = channel.receive()
            place = str(hello["place"])
        except AuthenticationError:
            self._close(connection)
            self._say(f"{peer} was refused: it has another key")
            return
        except Exception:  # whatever it sent
            self._close(connection)
            return
        self._forget(connection)
        with self._changed:
            self._arrived.setdefault(place, deque()).append((channel, hello))
            self._changed.notify_all()

    def _close(self, connection: Connection) -> None:
        # Under the lock, or another connection's descriptor of the same number might be shut.
        with self._lock:
            self._unproven.pop(connection, None)
            connection.close()


def most_unproven() -> int:
    """Return how many unproved connections fit beside the descriptors that this process needs."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST_UNPROVEN
    return max(1, min(MOST_UNPROVEN, limit // SHARE_OF_DESCRIPTORS // DESCRIPTORS_OF_ONE))


def _shut(connection: Connection) -> None:
    """Shut down a connection on which another thread waits, leaving its descriptor to that
    thread.
    """
    with contextlib.suppress(OSError):
        same = socket.socket(fileno=connection.fileno())
        try:
            same.shutdown(socket.SHUT_RDWR)
        finally:
            same.detach()
