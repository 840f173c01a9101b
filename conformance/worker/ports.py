"""Reserve a port for JAX's coordinator.

A bound socket that does not listen reserves the port; the coordinator binds the same one, because
both set SO_REUSEPORT.
"""

from __future__ import annotations

import socket
import time


class ReservedPort:
    """Holds a port of `host` until closed: a free one, or `port`; OSError if that is taken."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind((host, port))
        self.port: int = self._socket.getsockname()[1]
        self.address = f"{host}:{self.port}"

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


def wait_for_listener(address: str, timeout_s: float) -> bool:
    """Return whether a process listens at `HOST:PORT` within `timeout_s`.

    A process that asks before the coordinator listens waits a whole second before it asks again.
    """
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + timeout_s
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
