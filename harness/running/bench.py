"""Measure the cost of the harness itself: `pmap-conformance dev bench`.

Times a cluster from a warm zygote, a recycle after a kill, and the wall time of a case minus the
time inside its probe, as medians with the range, next to the aims for an idle machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.spec.names import NEW_PMAP
from conformance.spec.topology import Topology
from harness.clusters.cluster import Case
from harness.running.pool import Pool
from harness.targets.target import Target, provision

CATALOGUE = ("harness.running.benched",)
STARTS, RECYCLES, CASES, UNCOUNTED_CASES = 7, 7, 100, 5


@dataclass(frozen=True, slots=True)
class Aim:
    """The highest acceptable median in seconds, on an idle machine with two cores."""

    topology: str
    start_s: float
    recycle_s: float
    case_s: float


AIMS = (Aim("1x8", 0.3, 0.3, 0.001), Aim("4x2", 0.3, 0.3, 0.005))


def measure(spec: str, progress: Callable[[str], None]) -> None:
    """Print the table of a target; TargetError if it is not available."""
    target = provision(spec, progress=progress)
    for aim in AIMS:
        pool = Pool(CATALOGUE, progress=progress)
        try:
            _topology(pool, target, aim)
        finally:
            pool.close()


def _topology(pool: Pool, target: Target, aim: Aim) -> None:
    topology = Topology.parse(aim.topology)
    none = Case("bench.case", NEW_PMAP)
    facts = pool.facts(target, topology)  # brings the zygote up
    print(f"{aim.topology}, jax {facts['jax']}")

    def start() -> None:
        pool.release()
        pool.facts(target, topology)

    def recycle() -> None:
        # From the death of a process to a cluster that can be used again.
        pool.run(target, topology, Case("bench.case", NEW_PMAP, {"dies": True}))
        began.append(time.monotonic())
        pool.facts(target, topology)

    began: list[float] = []
    _print("cluster from zygote", [_timed(start) for _ in range(STARTS)], aim.start_s)
    recycled = []
    for _ in range(RECYCLES):
        recycle()
        recycled.append(time.monotonic() - began[-1])
    _print("recycle after a kill", recycled, aim.recycle_s)
    costs = []
    for number in range(UNCOUNTED_CASES + CASES):
        result = pool.run(target, topology, none).result
        if not result.clean:
            raise SystemExit(f"the benchmark's own case failed: {result.fault}")
        if number >= UNCOUNTED_CASES:
            costs.append(result.seconds - result.probe_seconds)
    _print("own cost of a case", costs, aim.case_s)


def _timed(function: Callable[[], None]) -> float:
    began = time.monotonic()
    function()
    return time.monotonic() - began


def _print(what: str, seconds: Sequence[float], aim_s: float) -> None:
    median, least, most = statistics.median(seconds), min(seconds), max(seconds)
    spread = f"{least * 1000:.2f} to {most * 1000:.2f}, n={len(seconds)}"
    above = "" if median <= aim_s else "   above"
    text = f"median {median * 1000:8.2f} ms   ({spread}); aim {aim_s * 1000:g} ms{above}"
    print(f"  {what:<22} {text}", flush=True)
