"""A process that imports jax once and forks workers: `python -m conformance.worker.zygote`.

It initialises no backend, starts no thread, and obeys the controller's orders: spawn, kill, read a
worker's output; when the connection ends it ends with all it started. An agent of another host
(`conformance.worker.agent`) is the same process, started in another way.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import select
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.worker import job_server
from conformance.worker.channel import (
    ADDRESS_VARIABLE,
    KEY_VARIABLE,
    Channel,
    ProtocolError,
    open_to_controller,
)
from conformance.worker.descent import (
    die_with_parent,
    end_with_parent,
    kill_with_descendants,
)
from conformance.worker.output import Output, await_stacks
from conformance.worker.ports import ReservedPort
from conformance.worker.starving import delays

PLACE_VARIABLE = "CONFORMANCE_PLACE"
CATALOGUE_VARIABLE = "CONFORMANCE_CATALOGUE"


def main() -> None:
    """Import jax, connect, then serve until the controller is gone."""
    end_with_parent(lambda: os._exit(1))
    from conformance.worker import process

    catalogue = process.load(os.environ[CATALOGUE_VARIABLE].split(","))
    # Not before: the import may take longer than a handshake may.
    channel = open_to_controller(os.environ[ADDRESS_VARIABLE], os.environ[KEY_VARIABLE])
    channel.send({"place": os.environ[PLACE_VARIABLE], "pid": os.getpid()})
    Zygote(channel, catalogue).serve()


@dataclasses.dataclass(frozen=True, slots=True)
class Forked:
    """A worker's complete settings, and the files that they name."""

    settings: dict[str, Any]
    output: Output


def as_given(settings: dict[str, Any]) -> Forked:
    """Return the settings unchanged: the controller shares this file system and names the files."""
    return Forked(settings, Output(Path(settings["log"]), Path(settings["stacks"])))


class Zygote:
    """The loop that serves orders. Each worker has a place that is never reused.

    `address` is this host's address for other hosts; `complete` adds settings that only this host
    knows.
    """

    def __init__(
        self,
        channel: Channel,
        catalogue: Any,
        address: str = "127.0.0.1",
        complete: Callable[[dict[str, Any]], Forked] = as_given,
    ) -> None:
        self._channel = channel
        self._catalogue = catalogue
        self._address = address
        self._complete = complete
        self._children: dict[int, str] = {}  # unreaped, by pid
        self._outputs: dict[str, Output] = {}
        self._ports: dict[str, ReservedPort] = {}
        self._orders: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "spawn": self._order_spawn,
            "kill": self._order_kill,
            "mark": self._order_mark,
            "written": self._order_written,
            "delays": self._order_delays,
            "dump stacks": self._order_dump_stacks,
            "evidence": self._order_evidence,
            "forget": self._order_forget,
            "reserve": self._order_reserve,
            "release": self._order_release,
        }
        self._servers, self._requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        job_server.SERVERS.own_folder()
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._die())
        end_with_parent(self._die)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's to answer
        # A worker that is asked for its stacks before it is able to tell them must not die of it.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def serve(self, first: dict[str, Any] | None = None) -> None:
        """Obey orders until the connection ends; `first` is an order that was already received."""
        connection = self._channel.connection
        sources: list[Any] = [connection.fileno(), self._wake, self._servers]
        # What was imported stays. A worker that looked for garbage in it would take a tenth of a
        # second each time, and a copy of every page.
        gc.collect()
        gc.freeze()
        try:
            if first is not None:
                self._obey(first)
            while True:
                readable, _, _ = select.select(sources, [], [])
                if self._wake in readable:
                    _drain(self._wake)
                    self._reap()
                if self._servers in readable:
                    job_server.SERVERS.answer(self._servers)
                if connection.fileno() in readable:
                    self._obey(self._channel.receive())
        except (EOFError, ProtocolError, OSError):
            self._die()

    def _obey(self, order: dict[str, Any]) -> None:
        """Carry out one order; ValueError where it is unknown."""
        if order["do"] not in self._orders:
            raise ValueError(f"a zygote knows no order {order['do']!r}")
        answer = self._orders[order["do"]](order) or {}
        if "ask" in order:
            self._channel.send({"answer": order["ask"], **answer})

    def _order_spawn(self, order: dict[str, Any]) -> dict[str, Any]:
        return {"pid": self._spawn(order["worker"])}

    def _order_kill(self, order: dict[str, Any]) -> None:
        for pid in self._pids(order["places"]):
            kill_with_descendants(pid)

    def _order_mark(self, order: dict[str, Any]) -> None:
        for place in order["places"]:
            self._outputs[place].mark()

    def _order_written(self, order: dict[str, Any]) -> dict[str, Any]:
        return {"written": [self._outputs[place].written() for place in order["places"]]}

    def _order_delays(self, order: dict[str, Any]) -> dict[str, Any]:
        pids = {place: pid for pid, place in self._children.items()}
        return {"delays": [delays(pids[one]) if one in pids else {} for one in order["places"]]}

    def _order_dump_stacks(self, order: dict[str, Any]) -> None:
        self._dump_stacks(order["places"])

    def _order_evidence(self, order: dict[str, Any]) -> dict[str, Any]:
        asked = order["stacks"]
        if asked:
            self._dump_stacks(asked)
            await_stacks([self._outputs[place] for place in asked])
        found = [dataclasses.asdict(self._outputs[place].evidence()) for place in order["places"]]
        return {"evidence": found}

    def _order_forget(self, order: dict[str, Any]) -> None:
        for place in order["places"]:
            if place in self._outputs:
                self._outputs.pop(place).close()

    def _order_reserve(self, order: dict[str, Any]) -> dict[str, Any]:
        port = ReservedPort(self._address)
        self._ports[port.address] = port
        return {"address": port.address}

    def _order_release(self, order: dict[str, Any]) -> None:
        self._ports.pop(order["address"]).close()

    def _pids(self, places: Sequence[str]) -> list[int]:
        # Only an unreaped child's id is certainly still its own.
        return [pid for pid, place in self._children.items() if place in places]

    def _dump_stacks(self, places: Sequence[str]) -> None:
        for pid in self._pids(places):
            os.kill(pid, signal.SIGUSR1)

    def _spawn(self, settings: dict[str, Any]) -> int:
        parent = os.getpid()
        forked = self._complete(settings)
        with warnings.catch_warnings():
            # Both Python and JAX warn of forking with threads; none of ours holds a lock.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            self._become_worker(forked.settings, parent)
        self._children[pid] = settings["place"]
        self._outputs[settings["place"]] = forked.output
        return pid

    def _become_worker(self, settings: dict[str, Any], parent: int) -> None:
        try:
            os.setsid()
            die_with_parent(signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                signal.signal(number, signal.SIG_DFL)
            self._channel.close()
            self._servers.close()
            job_server.SERVERS.of_parent(self._requests)
            redirect_output(settings["log"])
            from conformance.worker import process

            process.run(settings, self._catalogue)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        for pid, place in list(self._children.items()):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            # What the worker left in its group must go while the group is certainly its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            del self._children[pid]
            self._channel.send({"exited": place, "status": os.waitstatus_to_exitcode(status)})

    def _die(self) -> None:
        for pid in self._children:
            kill_with_descendants(pid)
        job_server.SERVERS.close()
        os._exit(0)


def redirect_output(log: str) -> None:
    """Append standard output and error, of Python and native code, to a file."""
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


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


if __name__ == "__main__":
    main()
