"""Where clusters come from: this machine, or hosts whose agents connect.

A pool asks its fleet for a target's launcher, and does not know which of the two it has.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from conformance.commandline.ending import reason
from conformance.commandline.limits import parse_address
from conformance.spec.names import CPU
from conformance.worker.agent import PLACE, AgentError, new_key, read_key
from conformance.worker.deadlines import HOSTS_S
from conformance.worker.folders import Scratch
from conformance.worker.zygote import CATALOGUE_VARIABLE
from harness.clusters.hub import Hub
from harness.clusters.launchers import Launcher, TargetDown, here, mpi, slurm, ssh, tpu_pod
from harness.clusters.launchers.hosts import HostsLauncher, Wanted
from harness.clusters.launchers.local import LocalLauncher
from harness.clusters.launchers.starting import Plan, Way, WayStarter
from harness.running.listening import LOOPBACK, reached_by
from harness.targets.platforms import named
from harness.targets.target import Target, worker_environment

MOST_ZYGOTES = 4  # idle interpreters with jax imported, about 200 MB each

WAYS: Mapping[str, Way] = {
    way.key: way for way in (here.WAY, slurm.WAY, mpi.WAY, ssh.WAY, tpu_pod.WAY)
}

_FOR_PYTHON = ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH")


class Fleet(Protocol):
    """Provides launchers; `here` says whether they start processes of this machine."""

    hub: Hub
    here: bool

    def launcher(self, target: Target) -> Launcher:
        """Return the launcher of a target; the fleet keeps owning it."""

    def starting(self, target: Target) -> contextlib.AbstractContextManager[Launcher]:
        """Yield the launcher of a target, which is kept alive while a cluster starts through it."""

    def close(self) -> None:
        """End everything that was started."""


class LocalFleet:
    """Zygotes of this machine; the most recently used ones are kept."""

    here = True

    def __init__(self, catalogue: Sequence[str], platform: str = CPU) -> None:
        self.hub = Hub()
        self._catalogue = catalogue
        self._platform = platform
        self._scratch = Scratch("run")
        self._launchers: dict[Target, LocalLauncher] = {}
        self._lock = threading.Lock()

    def launcher(self, target: Target) -> LocalLauncher:
        """Return the target's zygote, which starts on first use."""
        with self._lock:
            return self._launcher(target)

    @contextlib.contextmanager
    def starting(self, target: Target) -> Iterator[LocalLauncher]:
        """Yield the target's zygote; no other thread ends it as idle meanwhile."""
        with self._lock:
            launcher = self._launcher(target)
            launcher.count(1)
        try:
            yield launcher
        finally:
            launcher.count(-1)

    def _launcher(self, target: Target) -> LocalLauncher:
        launcher = self._launchers.pop(target, None)
        if launcher is None:
            idle = [one for one, launcher in self._launchers.items() if launcher.idle]
            for one in idle[: max(0, len(self._launchers) + 1 - MOST_ZYGOTES)]:
                self._launchers.pop(one).close()
            launcher = LocalLauncher(
                target.python,
                worker_environment(
                    target,
                    os.environ,
                    platform=named(self._platform),
                    catalogue=self._catalogue,
                ),
                self.hub,
                self._scratch.folder / f"target-{secrets.token_hex(4)}",
                self._catalogue,
            )
        self._launchers[target] = launcher  # last in the dict: most recently used
        return launcher

    def close(self) -> None:
        """End the zygotes and the listener, and remove the files."""
        for launcher in self._launchers.values():
            launcher.close()
        self._launchers.clear()
        self.hub.close()
        self._scratch.close()


@dataclass(frozen=True, slots=True)
class Hosts:
    """What a run asks of hosts: their number, address, key, and how they are started.

    Without a `launcher` the agents are started by hand or by a scheduler. It may describe one test
    process's share of a run's hosts, with `first` as their lowest rank.
    """

    count: int
    listen: str = f"{LOOPBACK}:0"
    key_file: Path | None = None
    launcher: str | None = None
    names: tuple[str, ...] = ()
    within_s: float = HOSTS_S
    first: int = 0
    shared: bool = False


class HostFleet:
    """Agents on other hosts: those of a launched target, or those that are started by hand."""

    here = False

    def __init__(
        self,
        hosts: Hosts,
        catalogue: Sequence[str],
        platform: str = CPU,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._hosts = hosts
        self._catalogue = catalogue
        self._platform = platform
        self._progress = progress
        self._scratch = Scratch("run")
        self._launchers: dict[Target, HostsLauncher] = {}
        host, port = parse_address(hosts.listen)
        try:
            self.hub = Hub(host, port, key_of(hosts.key_file), progress)
        except OSError as error:
            self._scratch.close()
            raise ValueError(f"--listen {hosts.listen}: {reason(error)}") from error
        if hosts.launcher is None and not hosts.shared:
            progress(f"listening for {hosts.count} agents at {host}:{self.hub.port}")

    def launcher(self, target: Target) -> HostsLauncher:
        """Return the hosts of a target; TargetDown if agents started by hand already serve
        another.
        """
        if target not in self._launchers:
            hosts = self._hosts
            if hosts.launcher is None:
                if self._launchers:
                    raise TargetDown(
                        "agents that are started by hand have one JAX: run one --target, or let "
                        "a --launcher start them"
                    )
                made = HostsLauncher(self.hub, self._wanted(), progress=self._progress)
            else:
                made = self._launched(target, WAYS[hosts.launcher])
            self._launchers[target] = made
        return self._launchers[target]

    @contextlib.contextmanager
    def starting(self, target: Target) -> Iterator[HostsLauncher]:
        """Yield the hosts of a target, which stay until the fleet is closed."""
        yield self.launcher(target)

    def close(self) -> None:
        """End the agents, what started them and the listener, and remove the files."""
        for launcher in self._launchers.values():
            launcher.close()
        self._launchers.clear()
        self.hub.close()
        self._scratch.close()

    def _launched(self, target: Target, way: Way) -> HostsLauncher:
        hosts = self._hosts
        token = secrets.token_hex(4)
        environment = worker_environment(
            target,
            os.environ,
            platform=named(self._platform),
            catalogue=self._catalogue,
        )
        plan = Plan(
            hosts.count,
            f"{reached_by(hosts.listen, way)}:{self.hub.port}",
            str(target.python),
            hosts.names,
            place=f"agent-{token}",
            variables={
                **{name: environment[name] for name in _FOR_PYTHON},
                CATALOGUE_VARIABLE: ",".join(self._catalogue),
            },
        )
        starter = WayStarter(
            way, plan, environment, self.hub.key, self._scratch.folder / f"agents-{token}"
        )
        return HostsLauncher(self.hub, self._wanted(plan.place), starter, self._progress)

    def _wanted(self, place: str = PLACE) -> Wanted:
        hosts, platform = self._hosts, named(self._platform)
        return Wanted(
            hosts.count,
            place,
            hosts.names,
            hosts.within_s,
            first=hosts.first,
            devices=platform.name if platform.has_devices else None,
        )


def key_of(file: Path | None) -> str:
    """Return the key in `file`, creating the file if needed; ValueError if its content is
    no key.
    """
    if file is None:
        return new_key()
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(f"{new_key()}\n")
        return read_key(file, None)
    except (OSError, AgentError) as error:
        raise ValueError(f"--key-file {reason(error)}") from error
