"""Where workers, zygotes and the agents of other hosts connect.

One listener for the whole controller. Every connection is authenticated in a thread of its own, so
that a client that says nothing keeps nobody else waiting, and then announces which place it fills.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from typing import Any

from harness.clusters.channel import Channel, Rubbish, authenticate
from harness.clusters.deadlines import HANDSHAKE_S


class Hub:
    """Listens on `host`; `address` and `key` (hexadecimal) are what a worker needs to connect.

    Who is not admitted is told to `refused`, in a line.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._key = bytes.fromhex(key) if key else secrets.token_bytes(32)
        self._socket = socket.create_server((host, port), backlog=1024)
        self._arrived: dict[str, deque[tuple[Channel, dict[str, Any]]]] = {}
        self._changed = threading.Condition()
        self._refused = refused
        self.port: int = self._socket.getsockname()[1]
        self.address = f"{host}:{self.port}"
        self.key = self._key.hex()
        threading.Thread(target=self._accept, name="hub", daemon=True).start()

    def wait_for(self, place: str, timeout_s: float) -> tuple[Channel, dict[str, Any]] | None:
        """The channel of whoever announced `place`, with its hello; None after `timeout_s`.

        Where several announced it, each is handed out once, the first to come first.
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
        """Listen no more; channels that were handed out stay open."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake `accept`
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                client, (peer, *_) = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._admit, args=(client, peer), daemon=True).start()

    def _admit(self, client: socket.socket, peer: str) -> None:
        # A client that stalls in the handshake only holds this thread, and only this long.
        client.settimeout(None)
        connection = Connection(client.detach())
        watchdog = threading.Timer(HANDSHAKE_S, _shut, (connection,))
        watchdog.daemon = True
        watchdog.start()
        try:
            channel = authenticate(connection, self._key)
            hello = channel.receive()
            place = str(hello["place"])
        except AuthenticationError:
            connection.close()
            self._refused(f"{peer} was refused: it has another key")
            return
        except (EOFError, OSError, Rubbish, KeyError):
            connection.close()
            return
        finally:
            watchdog.cancel()
        with self._changed:
            self._arrived.setdefault(place, deque()).append((channel, hello))
            self._changed.notify_all()


def _shut(connection: Connection) -> None:
    try:
        duplicate = socket.socket(fileno=socket.dup(connection.fileno()))
        duplicate.shutdown(socket.SHUT_RDWR)
        duplicate.close()
    except OSError:
        pass
