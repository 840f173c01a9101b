"""Warm clusters, one per target and topology, leased to the test process that needs them.

A test process keeps one cluster at a time and asks for permits only while it holds none, so that
test processes can never deadlock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.spec.names import CPU
from conformance.spec.topology import Topology
from harness.clusters.cluster import Case, CaseResult, Cluster, ClusterDown
from harness.clusters.launchers import Launcher
from harness.running import devices
from harness.running.admission import (
    Admission,
    Permits,
    process_capacity,
    start_capacity,
    waiting_capacity,
)
from harness.running.fleet import Fleet, LocalFleet
from harness.targets.platforms import TPU, named
from harness.targets.target import Target, default_cache


@dataclass
class Spent:
    """Where the wall time of this test process's cells was spent, in seconds."""

    probes: float = 0.0
    harness: float = 0.0
    starting: float = 0.0
    faults: float = 0.0  # of cases that crashed or hung, deadlines included
    cells: int = 0
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A completed case: its result, the workers' facts, and whether the cluster was fresh."""

    result: CaseResult
    facts: dict[str, Any]
    fresh: bool


class Pool:
    """Runs cases on clusters that it opens, keeps warm and closes.

    They come from `fleet`, which its owner closes; without one, from a fleet of this machine. A
    pool of `waiting` cases takes no permits from those that compute.
    """

    def __init__(
        self,
        catalogue: Sequence[str],
        platform: str = CPU,
        *,
        isolated: bool = False,
        progress: Callable[[str], None] = lambda _: None,
        fleet: Fleet | None = None,
        waiting: bool = False,
    ) -> None:
        self.spent = Spent()
        self._platform = named(platform)
        self._isolated = isolated
        self._fleet: Fleet = fleet or LocalFleet(catalogue, platform)
        self._owns_fleet = fleet is None
        locks = default_cache() / "admission"
        if waiting:
            self._processes = Admission(locks, "waiting", waiting_capacity(), progress)
        else:
            self._processes = Admission(locks, "process", process_capacity(), progress)
        self._starts = Admission(locks, "start", start_capacity(), progress)
        self._devices = devices.present(self._platform, os.environ) if self._fleet.here else []
        self._whole = Admission(locks, self._platform.name, len(self._devices), progress)
        self._cluster: Cluster | None = None
        self._key: tuple[Target, Topology] | None = None
        self._as_by_default = False  # how the warm cluster compiles
        self._permits: list[Permits] = []
        self._owner = os.getpid()
        self._ended = False

    def run(self, target: Target, topology: Topology, case: Case, *, fresh: bool = False) -> Run:
        """Run `case`, on a new cluster if `fresh` or the pool is isolated.

        A cluster that fails to start is the case's fault record. TargetDown if the target itself
        cannot run.
        """
        began = time.monotonic()
        try:
            cluster = self._lease(target, topology, fresh or self._isolated, case.looks_at_compiled)
        except ClusterDown as down:
            seconds = time.monotonic() - began
            return Run(CaseResult((), down.fault, seconds, 0.0), {}, True)
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

    def facts(
        self, target: Target, topology: Topology, *, as_by_default: bool | None = None
    ) -> dict[str, Any]:
        """Return facts from a live worker; ClusterDown or TargetDown if there is none."""
        return dict(self._lease(target, topology, as_by_default=as_by_default).facts)

    def unmet(self, target: Target, topology: Topology) -> str | None:
        """Return why no such cluster is possible with these devices, here or on the hosts.

        None if it is possible. TargetDown if the hosts do not connect.
        """
        if not self._platform.has_devices:
            return None
        if self._fleet.here:
            return devices.unmet(topology, self._devices)
        try:
            self._on_hosts(target, topology)
        except devices.NoDevices as error:
            return str(error)
        return None

    def release(self) -> None:
        """Close the warm cluster, if any, and release its permits."""
        cluster, self._cluster, self._key = self._cluster, None, None
        if cluster is not None:
            cluster.close()
        while self._permits:
            self._permits.pop().release()

    def close(self) -> None:
        """End everything: the cluster, and the fleet if the pool owns it."""
        if os.getpid() != self._owner:
            return
        self._ended = True
        self.release()
        if self._owns_fleet:
            self._fleet.close()

    def _lease(
        self,
        target: Target,
        topology: Topology,
        fresh: bool = False,
        as_by_default: bool | None = None,
    ) -> Cluster:
        """Return a cluster of the target and the topology; None leaves open how it compiles."""
        if self._platform.name != CPU:  # everything is compiled as by default
            as_by_default = None
        cluster = self._cluster
        if (
            cluster is not None
            and self._key == (target, topology)
            and as_by_default in (self._as_by_default, None)
            and not (fresh and cluster.cases)
        ):
            return cluster
        self.release()
        began = time.monotonic()
        try:
            with self._fleet.starting(target) as launcher:
                launcher.warm_up()
                return self._start(launcher, target, topology, bool(as_by_default))
        finally:
            self.spent.starting += time.monotonic() - began

    def _start(
        self, launcher: Launcher, target: Target, topology: Topology, as_by_default: bool
    ) -> Cluster:
        """Start a cluster and keep it; TargetDown or ClusterDown if it fails to start."""
        try:
            here = self._fleet.here
            if here:
                processes = topology.processes
                self._permits = [self._processes.acquire(processes, ending=self._is_ended)]
            variables = self._assigned(target, topology)
            starts = self._starts
            with starts.acquire(1, ending=self._is_ended) if here else contextlib.nullcontext():
                self._cluster = Cluster(
                    launcher,
                    self._fleet.hub,
                    topology,
                    self._platform.name,
                    variables=variables,
                    as_by_default=as_by_default,
                )
        except BaseException:
            self.release()
            raise
        self._key, self._as_by_default = (target, topology), as_by_default
        self.spent.clusters += 1
        return self._cluster

    def _is_ended(self) -> bool:
        return self._ended

    def _on_hosts(self, target: Target, topology: Topology) -> list[dict[str, str]]:
        launcher = self._fleet.launcher(target)
        launcher.warm_up()
        return devices.on_hosts(self._platform, topology, launcher.devices(self._platform.name))

    def _assigned(self, target: Target, topology: Topology) -> list[dict[str, str]]:
        """Reserve devices for a cluster; return each process's variables.

        A TPU's processes form one slice of the host, so they take all of it. Devices of other hosts
        belong to this test process alone.
        """
        if not self._platform.has_devices:
            return []
        if not self._fleet.here:
            return self._on_hosts(target, topology)
        every = self._platform.name == TPU
        permits = self._whole.acquire(len(self._devices) if every else topology.devices)
        self._permits.append(permits)
        ids = [self._devices[number] for number in permits.numbers]
        return devices.variables(self._platform, topology, ids)
