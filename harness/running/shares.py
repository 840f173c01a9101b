"""Divide hosts among the test processes of `-n`: each has its own hosts and agents.

A device belongs to one cluster at a time and a test process has one cluster at a time, so two test
processes that shared a host would take each other's devices.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

from conformance.commandline.counting import counted
from conformance.commandline.limits import parse_address
from conformance.worker.agent import DIAL, PLACE
from conformance.worker.deadlines import POLL_S
from harness.clusters.hub import Hub
from harness.clusters.launchers import hellos, mpi, ssh, tpu_pod
from harness.running.fleet import Hosts, key_of
from harness.targets.platforms import TPU


def divided(hosts: int, among: int) -> list[range]:
    """Return the hosts of each test process by rank: neighbours, sizes differing by at most one."""
    return [range(n * hosts // among, (n + 1) * hosts // among) for n in range(among)]


def refusal(hosts: Hosts, among: int, platform: str) -> str | None:
    """Return why these hosts cannot be divided among so many test processes; None if they can."""
    if among > hosts.count:
        return (
            f"--hosts {hosts.count} with -n {among}: each test process needs a host of its own: "
            f"give -n {hosts.count} at the most, or leave out -n"
        )
    if hosts.launcher == tpu_pod.WAY.key or platform == TPU:
        return "the hosts of a TPU slice are one job, which cannot be divided: leave out -n"
    by_name = hosts.launcher in (mpi.WAY.key, ssh.WAY.key) or hosts.names
    if by_name and len(hosts.names) != hosts.count:
        return (
            f"--hosts {hosts.count} with -n: test processes share no host, so hosts must be known "
            f"by name, and {len(hosts.names)} are: give --host-list with {hosts.count} names"
        )
    return None


def describe_shares(hosts: Hosts, among: int) -> str:
    """Describe how many hosts each test process has."""
    counts = [len(one) for one in divided(hosts.count, among)]
    each = " + ".join(map(str, counts))
    text = f"{counted(hosts.count, 'host')} divided among -n {among}: {each}"
    uneven = len(set(counts)) > 1
    return f"{text}, as they do not divide evenly" if uneven else text


def share(hosts: Hosts, number: int, among: int) -> Hosts:
    """Return what test process `number` asks for; a named port is incremented by `number`."""
    own_count = divided(hosts.count, among)[number]
    host, port = parse_address(hosts.listen)
    return dataclasses.replace(
        hosts,
        count=len(own_count),
        listen=f"{host}:{port + 1 + number if port else 0}",
        names=hosts.names[own_count.start : own_count.stop],
        # What starts them in a job of their own also counts them from 0.
        first=own_count.start if hosts.launcher is None else 0,
        shared=True,
    )


class Shares:
    """The assignment of shares to test processes; a replacement process gets the old share."""

    def __init__(self, hosts: Hosts, among: int) -> None:
        self._hosts = hosts
        self._among = among
        self._holders: dict[int, str] = {}

    def take(self, process: str) -> Hosts:
        """Return the first free share."""
        free = next(n for n in range(self._among) if n not in self._holders)
        self._holders[free] = process
        return share(self._hosts, free, self._among)

    def give_back(self, process: str) -> None:
        """Release the share of a test process that ended, if it has one."""
        self._holders = {n: one for n, one in self._holders.items() if one != process}


class HostAllocator:
    """The address where agents connect that the harness did not start: routes each to its test
    process.

    The rank selects the test process, so that a replacement reaches the same one. ValueError if the
    address cannot be listened on.
    """

    def __init__(self, hosts: Hosts, among: int, progress: Callable[[str], None]) -> None:
        host, port = parse_address(hosts.listen)
        self._ports = {
            rank: port + 1 + number
            for number, ranks in enumerate(divided(hosts.count, among))
            for rank in ranks
        }
        self._progress = progress
        try:
            self._hub = Hub(host, port, key_of(hosts.key_file), progress)
        except OSError as error:
            raise ValueError(f"--listen {hosts.listen}: {error}") from error
        progress(f"listening for {hosts.count} agents at {host}:{port}")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="allocator", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._thread.join()
        self._hub.close()

    def _serve(self) -> None:
        while not self._closed.is_set():
            arrived = self._hub.wait_for(PLACE, POLL_S)
            if arrived is None:
                continue
            channel, message = arrived
            try:
                hello = hellos.parse(message)
                if hello.rank in self._ports:
                    self._progress(f"host {hello.text}")
                    channel.send({"do": DIAL, "port": self._ports[hello.rank]})
                else:
                    self._progress(
                        f"host {hello} is sent away: with -n each needs a rank from 0 to "
                        f"{len(self._ports) - 1}, by which its test process is known"
                    )
            except (ValueError, OSError) as error:
                self._progress(f"an agent was sent away: {error}")
            finally:
                channel.close()
