"""Warm clusters, leased: one per target and topology, opened by its first user.

A test process keeps one cluster at a time and asks for permits only when it holds none, so that
test processes can never wait for each other in a circle.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.catalogue.topology import Topology
from harness.clusters.cluster import Case, CaseResult, Cluster, ClusterDown
from harness.clusters.hub import Hub
from harness.clusters.launchers.local import LocalLauncher
from harness.running import devices
from harness.running.admission import Admission, Permits, process_capacity, start_capacity
from harness.targets.platforms import TPU, named
from harness.targets.target import Target, default_cache, worker_environment

MOST_ZYGOTES = 4  # idle interpreters with jax imported, about 200 MB each


@dataclass
class Spent:
    """Where the wall time of this test process's cells went, in seconds."""

    probes: float = 0.0
    harness: float = 0.0
    starting: float = 0.0
    faults: float = 0.0  # of cases that crashed or hung, deadlines included
    cells: int = 0
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A case that was run: its result, what the workers are, and whether the cluster was fresh."""

    result: CaseResult
    facts: dict[str, Any]
    fresh: bool


class Pool:
    """Runs cases on clusters that it opens, keeps warm and closes."""

    def __init__(
        self,
        catalogue: Sequence[str],
        platform: str = "cpu",
        *,
        isolated: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.spent = Spent()
        self._catalogue = catalogue
        self._platform = named(platform)
        self._devices = devices.present(self._platform, os.environ)
        self._isolated = isolated
        self._hub = Hub()
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        locks = default_cache() / "admission"
        self._processes = Admission(locks, "process", process_capacity(), progress)
        self._starts = Admission(locks, "start", start_capacity(), progress)
        self._whole = Admission(locks, self._platform.name, len(self._devices), progress)
        self._launchers: dict[Target, LocalLauncher] = {}
        self._cluster: Cluster | None = None
        self._key: tuple[Target, Topology] | None = None
        self._permits: list[Permits] = []
        self._owner = os.getpid()

    def run(self, target: Target, topology: Topology, case: Case, *, fresh: bool = False) -> Run:
        """Run `case`, on a cluster that ran nothing before where `fresh` or the pool is isolated.

        A cluster that does not come up is the case's fault record. TargetDown where the target
        itself does not.
        """
        began = time.monotonic()
        try:
            cluster = self._lease(target, topology, fresh or self._isolated)
        except ClusterDown as down:
            self.spent.starting += time.monotonic() - began
            seconds = time.monotonic() - began
            return Run(CaseResult((), down.fault, seconds, 0.0), {}, True)
        self.spent.starting += time.monotonic() - began
        was_fresh = cluster.cases == 0
        try:
            result = cluster.run(case)
        except BaseException:
            self.release()  # interrupted in the middle of a case: nothing may follow on it
            raise
        self.spent.cells += 1
        if result.fault is not None:
            self.spent.faults += result.seconds
        else:
            self.spent.probes += result.probe_seconds
            self.spent.harness += result.seconds - result.probe_seconds
        facts = dict(cluster.facts)
        if not result.clean:
            self.release()
        return Run(result, facts, was_fresh)

    def facts(self, target: Target, topology: Topology) -> dict[str, Any]:
        """What really runs there, from a live worker. ClusterDown or TargetDown where none does."""
        return dict(self._lease(target, topology, fresh=False).facts)

    def unmet(self, topology: Topology) -> str | None:
        """Why this machine cannot have such a cluster, by its devices; None where it can."""
        if not self._platform.has_devices:
            return None
        return devices.unmet(topology, self._devices)

    def release(self) -> None:
        """Close the warm cluster, if there is one, and give its permits back."""
        cluster, self._cluster, self._key = self._cluster, None, None
        if cluster is not None:
            cluster.close()
        while self._permits:
            self._permits.pop().release()

    def close(self) -> None:
        """End everything: clusters, zygotes, the listener, the files."""
        if os.getpid() != self._owner:
            return
        self.release()
        for launcher in self._launchers.values():
            launcher.close()
        self._launchers.clear()
        self._hub.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _lease(self, target: Target, topology: Topology, fresh: bool) -> Cluster:
        cluster = self._cluster
        if (
            cluster is not None
            and self._key == (target, topology)
            and not (fresh and cluster.cases)
        ):
            return cluster
        self.release()
        launcher = self._launcher(target)
        launcher.warm_up()
        self._permits = [self._processes.acquire(topology.processes)]
        try:
            variables = self._assigned(topology)
            with self._starts.acquire(1):
                self._cluster = Cluster(
                    launcher,
                    self._hub,
                    self._folder,
                    topology,
                    self._platform.name,
                    variables=variables,
                )
        except BaseException:
            self.release()
            raise
        self._key = (target, topology)
        self.spent.clusters += 1
        return self._cluster

    def _assigned(self, topology: Topology) -> list[dict[str, str]]:
        """Take devices for a cluster; what its processes are told of them.

        A TPU's processes make up one slice of the host, so they take the whole of it.
        """
        if not self._platform.has_devices:
            return []
        every = self._platform.name == TPU
        held = self._whole.acquire(len(self._devices) if every else topology.devices)
        self._permits.append(held)
        ids = [self._devices[number] for number in held.numbers]
        return devices.variables(self._platform, topology, ids)

    def _launcher(self, target: Target) -> LocalLauncher:
        launcher = self._launchers.pop(target, None)
        if launcher is None:
            while len(self._launchers) >= MOST_ZYGOTES:
                self._launchers.pop(next(iter(self._launchers))).close()
            launcher = LocalLauncher(
                target.python,
                worker_environment(target, os.environ, platform=self._platform),
                self._hub,
                self._folder / f"target-{secrets.token_hex(4)}",
                self._catalogue,
            )
        self._launchers[target] = launcher  # last in the dict: most recently used
        return launcher
