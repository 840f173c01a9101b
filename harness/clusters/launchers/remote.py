"""The workers of one cluster on several hosts, and what is known when a host is lost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.worker.deadlines import KILL_S
from conformance.worker.output import Evidence
from conformance.worker.starving import Delays
from harness.clusters.launchers import Exit, TargetDown
from harness.clusters.launchers.hellos import Hello
from harness.clusters.launchers.host import Host, HostGone


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A host whose agent is connected, with its description."""

    hello: Hello
    host: Host


@contextlib.contextmanager
def lost(remote_host: RemoteHost) -> Iterator[None]:
    """Turn a lost host into TargetDown with the host's name."""
    try:
        yield
    except HostGone as error:
        raise TargetDown(f"host {remote_host.hello} was lost: {agents(error)}") from error


def agents(gone: HostGone) -> str:
    """Describe how a host's agent was lost."""
    return f"its agent{str(gone).removeprefix('it')}"


class RemotePort:
    """A port reserved by a host's agent."""

    def __init__(self, host: RemoteHost, address: str) -> None:
        self._host = host
        self.address = address

    def close(self) -> None:
        """Release the port; a lost host has released it already."""
        with contextlib.suppress(HostGone):
            self._host.host.tell("release", address=self.address)


class HostProcesses:
    """The processes `places`, each running on its entry of `where`, ordered by index."""

    def __init__(self, where: Sequence[RemoteHost], places: Sequence[str]) -> None:
        self._where = list(where)
        self._places = list(places)
        self._hosts = list(dict.fromkeys(where))
        self._ended: dict[int, int] = {}

    def exits(self) -> list[Exit]:
        """Return the ended processes that the hosts have reported, in the order of their ends."""
        for one in self._hosts:
            with lost(one):
                self._note(one)
        return [Exit(process, code) for process, code in self._ended.items()]

    def mark(self) -> None:
        """Mark the start of a case on all hosts, and wait until each has done so."""
        self._all("mark")

    def written(self) -> list[int]:
        """Return the bytes written by each process, as the hosts report them."""
        return [int(size) for size in self._of_each("written")]

    def delays(self) -> list[Delays]:
        """Return each thread's time without a core, as the hosts count it."""
        return list(self._of_each("delays"))

    def evidence(self, running: Sequence[int]) -> list[Evidence]:
        """Return evidence from all hosts that still answer."""
        asked = {self._places[p] for p in running}
        numbers: dict[RemoteHost, int] = {}
        for one in self._hosts:
            host_processes = self._on(one)
            with contextlib.suppress(HostGone):
                stacks = [place for place in host_processes if place in asked]
                numbers[one] = one.host.ask("evidence", places=host_processes, stacks=stacks)
        found: dict[str, Evidence] = {}
        for one, number in numbers.items():
            with contextlib.suppress(HostGone):
                seen = one.host.answer(number)["evidence"]
                found |= {p: Evidence(**e) for p, e in zip(self._on(one), seen, strict=True)}
        return [found.get(place, Evidence()) for place in self._places]

    def lost(self) -> Mapping[int, str]:
        """Return the processes of lost hosts, each with the reason."""
        return {
            process: "ended with its host's agent"
            for process, one in enumerate(self._where)
            if one.host.gone
        }

    def host(self, process: int) -> str:
        """Return the host's name and rank."""
        return str(self._where[process].hello)

    def kill(self, timeout_s: float = KILL_S) -> bool:
        """End the processes on every host; on a lost host its agent's end has done so."""
        self._tell_to_kill()
        deadline = time.monotonic() + timeout_s
        while not self._all_ended():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        self._forget()
        return True

    def abandon(self) -> None:
        """End the processes that were started if not all could be."""
        self._tell_to_kill()
        self._forget()

    def _tell_to_kill(self) -> None:
        for one in self._hosts:
            with contextlib.suppress(HostGone):
                one.host.tell("kill", places=self._on(one))

    def _forget(self) -> None:
        for one in self._hosts:
            with contextlib.suppress(HostGone):
                one.host.forget(*self._on(one))

    def _all(self, do: str) -> dict[RemoteHost, dict[str, Any]]:
        """Send an order to all hosts at once; return their answers."""
        numbers = {}
        for one in self._hosts:
            with lost(one):
                numbers[one] = one.host.ask(do, places=self._on(one))
        answers = {}
        for one, number in numbers.items():
            with lost(one):
                answers[one] = one.host.answer(number)
        return answers

    def _of_each(self, what: str) -> list[Any]:
        """Return one field of the hosts' answers per process, ordered by index."""
        answers = self._all(what)
        rest = {one: iter(answer[what]) for one, answer in answers.items()}
        return [next(rest[one]) for one in self._where]

    def _on(self, host: RemoteHost) -> list[str]:
        pairs = zip(self._where, self._places, strict=True)
        return [place for one, place in pairs if one is host]

    def _note(self, host: RemoteHost) -> None:
        for place, code in host.host.exits().items():
            if place in self._places:
                self._ended.setdefault(self._places.index(place), code)

    def _all_ended(self) -> bool:
        for one in self._hosts:
            with contextlib.suppress(HostGone):
                self._note(one)
        gone = self.lost()
        return all(p in self._ended or p in gone for p in range(len(self._places)))
