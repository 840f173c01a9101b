"""Launch workers on other hosts, forked by the agents that connected from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conformance.worker import machine
from conformance.worker.agent import PLACE
from conformance.worker.channel import Channel
from conformance.worker.deadlines import HOSTS_S, POLL_S, REPLACED_S
from harness.clusters.hub import Hub
from harness.clusters.launchers import TargetDown, hellos
from harness.clusters.launchers.hellos import Hello
from harness.clusters.launchers.host import Host, HostGone
from harness.clusters.launchers.remote import HostProcesses, RemoteHost, RemotePort, agents, lost

PROGRESS_S = 15.0  # between two lines that say who is still missing
MOST_STARTS = 5  # of the agents by their starter: an agent that is lost again and again stays lost


class Starter(Protocol):
    """Starts the agents of all hosts at once."""

    def start(self) -> None:
        """Start the agents; TargetDown if they cannot be started from here."""

    def ended(self) -> str | None:
        """Return the output of a starter that ended by itself; None while it runs."""

    def close(self) -> None:
        """End the starter; its agents end by themselves."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many hosts, the `place` that they announce, and the time until which they may connect.

    `names` are the hosts by rank, if known beforehand, and `first` is the lowest rank. `devices` is
    the platform whose devices they must have, None if it has no devices.
    """

    count: int
    place: str = PLACE
    names: tuple[str, ...] = ()
    within_s: float = HOSTS_S
    replaced_s: float = REPLACED_S
    first: int = 0
    devices: str | None = None


class HostsLauncher:
    """Waits for the agents on the first request, then starts workers through them.

    Lost agents are restarted by the `starter`; without one, another agent of the same rank may take
    a lost one's place.
    """

    def __init__(
        self,
        hub: Hub,
        wanted: Wanted,
        starter: Starter | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._hub = hub
        self._wanted = wanted
        self._starter = starter
        self._progress = progress
        self._hosts: list[RemoteHost] = []
        self._started = 0
        self._patience_s = wanted.within_s
        self._sources = machine.sources()

    def warm_up(self) -> None:
        """Wait until every host's agent has connected; TargetDown names the absent or different
        ones.
        """
        self._look()
        if len(self._hosts) < self._wanted.count:
            self._gather()
        self._hosts.sort(key=lambda one: hellos.order(one.hello))
        differs = hellos.disagreement(self.hellos, self._sources, self._wanted.devices)
        if differs is not None:
            raise TargetDown(differs)

    def devices(self, platform: str) -> list[tuple[str, ...]]:
        """Return the devices that the agents report, by rank."""
        return [one.has(platform) for one in self.hellos]

    def reserve(self) -> RemotePort:
        """Reserve a port on the host with the first rank."""
        first = self._hosts[0]
        with lost(first):
            return RemotePort(first, first.host.answer(first.host.ask("reserve"))["address"])

    def start(self, settings: Sequence[Mapping[str, Any]]) -> HostProcesses:
        """Fork the workers, spread over the hosts by rank: neighbours share a host."""
        where = [self._hosts[at] for at in hellos.spread(len(settings), len(self._hosts))]
        started = HostProcesses(where, [one["place"] for one in settings])
        try:
            asked = []
            for host, one in zip(where, settings, strict=True):
                with lost(host):
                    asked.append(host.host.ask("spawn", worker=dict(one)))
            for host, number in zip(where, asked, strict=True):
                with lost(host):
                    host.host.answer(number)
        except TargetDown:
            started.abandon()
            raise
        return started

    def close(self) -> None:
        """Close all connections, which ends all agents, and end what started them."""
        for one in self._hosts:
            one.host.close()
        self._hosts.clear()
        if self._starter is not None:
            self._starter.close()

    @property
    def hellos(self) -> list[Hello]:
        """Return the hosts that are connected, by rank once all are."""
        return [one.hello for one in self._hosts]

    def _look(self) -> None:
        """Drop hosts that are lost, and add those that connected meanwhile."""
        for one in list(self._hosts):
            try:
                one.host.exits()
            except HostGone as gone:
                self._hosts.remove(one)
                self._progress(f"host {one.hello} was lost: {agents(gone)}")
        while (arrived := self._hub.wait_for(self._wanted.place, 0.0)) is not None:
            self._admit(*arrived)

    def _admit(self, channel: Channel, message: Mapping[str, Any]) -> None:
        try:
            hello = hellos.parse(message)
        except ValueError as error:
            channel.close()
            self._progress(str(error))
            return
        if len(self._hosts) >= self._wanted.count:
            channel.close()
            self._progress(
                f"host {hello} is not needed: all {self._wanted.count} hosts are connected"
            )
            return
        self._hosts.append(RemoteHost(hello, Host(channel)))
        self._progress(
            f"host {hello.text}; {len(self._hosts)} of {self._wanted.count} are connected"
        )

    def _gather(self) -> None:
        """Wait for absent hosts: long the first time, briefly for replacements."""
        if self._starter is not None and self._started < MOST_STARTS:
            self.close()  # those that are left belong to a job that has lost one of its processes
            self._started += 1
            self._patience_s = self._wanted.within_s
            self._starter.start()
        began = reported_at = time.monotonic()
        while len(self._hosts) < self._wanted.count:
            arrived = self._hub.wait_for(self._wanted.place, POLL_S)
            if arrived is not None:
                self._admit(*arrived)
                continue
            self._look()
            ended = self._starter.ended() if self._starter else None
            if ended is not None:
                self.close()
                raise TargetDown(f"{self._absent()} did not connect: {ended}")
            now = time.monotonic()
            if now - began > self._patience_s:
                waited, self._patience_s = self._patience_s, 0.0
                raise TargetDown(
                    f"{self._absent()}: no agent within {waited:g} s; here: "
                    f"{', '.join(map(str, sorted(self.hellos, key=hellos.order))) or 'none'}"
                )
            if now - reported_at > PROGRESS_S:
                reported_at = now
                self._progress(f"waiting for {self._absent()}, {now - began:.0f} s so far")
        self._patience_s = self._wanted.replaced_s

    def _absent(self) -> str:
        wanted = self._wanted
        return hellos.missing(self.hellos, wanted.count, wanted.names, wanted.first)
