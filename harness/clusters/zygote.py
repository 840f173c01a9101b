"""A process that imported jax once and forks workers from it: `python -m harness.clusters.zygote`.

It initialises no backend, starts no thread of its own, and obeys the orders of the controller:
spawn, dump stacks, kill, and (by the connection's end) die with everything it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from harness.clusters.channel import (
    ADDRESS_VARIABLE,
    KEY_VARIABLE,
    Channel,
    Rubbish,
    open_to_controller,
)

PLACE_VARIABLE = "CONFORMANCE_PLACE"
CATALOGUE_VARIABLE = "CONFORMANCE_CATALOGUE"

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Import, connect, then serve until the controller is gone."""
    _die_with_parent(signal.SIGTERM)
    from harness.clusters import worker

    catalogue = worker.load(os.environ[CATALOGUE_VARIABLE].split(","))
    # Not before: the import may take longer than a handshake may.
    channel = open_to_controller(os.environ[ADDRESS_VARIABLE], os.environ[KEY_VARIABLE])
    channel.send({"place": os.environ[PLACE_VARIABLE], "pid": os.getpid()})
    Zygote(channel, catalogue).serve()


class Zygote:
    """The loop; `children` maps pid to nothing but its being there, unreaped."""

    def __init__(self, channel: Channel, catalogue: Any) -> None:
        self._channel = channel
        self._catalogue = catalogue
        self._children: set[int] = set()
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._die())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's to answer

    def serve(self) -> None:
        """Obey until the connection ends."""
        connection = self._channel.connection
        while True:
            readable, _, _ = select.select([connection.fileno(), self._wake], [], [])
            if self._wake in readable:
                _drain(self._wake)
                self._reap()
            if connection.fileno() in readable:
                try:
                    self._obey(self._channel.receive())
                except (EOFError, Rubbish, OSError):
                    self._die()

    def _obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "spawn":
            self._spawn(order["worker"])
        elif order["do"] == "kill":
            for pid in order["pids"]:
                self._kill(pid)
        elif order["do"] == "dump stacks":
            for pid in self._children.intersection(order["pids"]):
                os.kill(pid, signal.SIGUSR1)

    def _spawn(self, settings: dict[str, Any]) -> None:
        parent = os.getpid()
        with warnings.catch_warnings():
            # Both Python and JAX warn of forking with threads; none of ours holds a lock.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            self._become_worker(settings, parent)
        self._children.add(pid)
        self._channel.send({"spawned": settings["place"], "pid": pid})

    def _become_worker(self, settings: dict[str, Any], parent: int) -> None:
        try:
            os.setsid()
            _die_with_parent(signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            self._channel.close()
            redirect_output(settings["log"])
            from harness.clusters import worker

            worker.run(settings, self._catalogue)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(1)

    def _kill(self, pid: int) -> None:
        # Only an unreaped child's id is certainly still its own.
        if pid in self._children:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(pid, signal.SIGKILL)  # it had no time to lead a group of its own

    def _reap(self) -> None:
        for pid in list(self._children):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            # What the worker left in its group must go while the group is certainly its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            self._children.discard(pid)
            self._channel.send({"exited": pid, "status": os.waitstatus_to_exitcode(status)})

    def _die(self) -> None:
        for pid in self._children:
            self._kill(pid)
        os._exit(0)


def redirect_output(log: str) -> None:
    """Standard output and error, of Python and native code alike, go to the end of a file."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(file)
    os.close(nothing)


def _die_with_parent(number: int) -> None:
    # Linux alone has this; elsewhere the connection's end does the same, a little later.
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


if __name__ == "__main__":
    main()
