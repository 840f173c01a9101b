"""Run a user's function, or a clause, on the sides to compare; records in plain JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP
from conformance.spec.topology import Topology
from conformance.worker.deadlines import CASE_S
from harness.clusters.cluster import Case, ClusterDown
from harness.clusters.launchers import TargetDown
from harness.running.pool import Pool
from harness.targets.target import Target
from harness.usercode.arguments import Argument, Axis
from harness.usercode.function import FunctionName
from harness.usercode.steps import CLAUSE, LATER

CATALOGUE = "harness.usercode.probe"
OWN = "own"  # in place of an implementation: the function maps by itself, as JAX does by default
TIMED_CALLS = 20
MOST_TIMED_CALLS = 1000

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Call:
    """How a function is called: mapped by us or by itself, with which arguments, how often.

    `inputs` is the function that makes the arguments, in place of `arguments`; `feed` results
    become the first arguments of the next call; `timed` calls are timed after the first three.
    """

    function: FunctionName
    mapped: bool = False
    inputs: FunctionName | None = None
    arguments: tuple[Argument, ...] = ()
    in_axes: tuple[Axis, ...] = (0,)
    out_axes: Axis = 0
    axis_name: str = "i"
    donate: tuple[int, ...] = ()
    feed: int = 0
    seed: int = 0
    timed: int = 0
    deadline_s: float = CASE_S

    def parameters(self, *, later: bool) -> dict[str, Any]:
        """Return what a worker receives; `later` says whether the result is used afterwards."""
        program = {
            "function": self.function.record(),
            "mapped": self.mapped,
            "inputs": None if self.inputs is None else self.inputs.record(),
            "arguments": [one.record() for one in self.arguments],
            "in_axes": list(self.in_axes),
            "out_axes": self.out_axes,
            "axis_name": self.axis_name,
            "donate": list(self.donate),
            "feed": self.feed,
            "seed": self.seed,
        }
        return {"program": program, "timed": self.timed, "later": later}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens: an implementation, a target, a topology."""

    implementation: str
    target: Target
    topology: Topology


@dataclass(frozen=True, slots=True)
class Observed:
    """What one run showed; `missing` is why it was not run, `label` names its function.

    `observations` and `fault` have the form of a results file.
    """

    implementation: str
    target: str
    topology: str
    jax: str = ""
    label: str = ""
    missing: str = ""
    observations: tuple[Mapping[str, Any], ...] = ()
    fault: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return dataclasses.asdict(self)


class Observer:
    """Runs programs in sequence on the clusters of one pool, each on a fresh cluster."""

    def __init__(self, pool: Pool, progress: Progress) -> None:
        self._pool = pool
        self._progress = progress

    def call(self, call: Call, place: Place, label: str = "") -> Observed:
        """Run a user's function; once more without later operations if those fail."""
        seen = self.observe(CLAUSE, call.parameters(later=True), call.deadline_s, place, label)
        if seen.fault is not None and _in_later_step(seen.fault):
            self._progress(
                "an operation on the result failed: running once more without operations"
            )
            again = call.parameters(later=False)
            return self.observe(CLAUSE, again, call.deadline_s, place, label)
        return seen

    def observe(
        self,
        clause: str,
        parameters: Mapping[str, Any],
        deadline_s: float,
        place: Place,
        label: str = "",
    ) -> Observed:
        """Run a clause on a fresh cluster."""
        own = place.implementation == OWN
        name = IMPLEMENTATIONS[-1] if own else place.implementation
        seen = Observed(place.implementation, place.target.spec, str(place.topology), label=label)
        try:
            facts = self._pool.facts(place.target, place.topology, as_by_default=True)
        except (ClusterDown, TargetDown) as down:
            return dataclasses.replace(seen, missing=" ".join(str(down).split()))
        seen = dataclasses.replace(seen, jax=facts["jax"], facts=facts)
        if name in IMPLEMENTATIONS and name not in facts["implementations"]:
            gone = "legacy pmap" if name == LEGACY_PMAP else name
            return dataclasses.replace(seen, missing=f"jax {seen.jax} has no {gone}")
        self._progress(_title(seen))
        case = Case(clause, name, parameters, deadline_s, looks_at_compiled=True)
        result = self._pool.run(place.target, place.topology, case, fresh=True).result
        fault = None if result.fault is None else dataclasses.asdict(result.fault)
        return dataclasses.replace(seen, observations=result.observations, fault=fault)


@contextmanager
def observer(catalogue: Sequence[str], progress: Progress) -> Iterator[Observer]:
    """Yield an observer of clauses of `catalogue`; its clusters end with the block."""
    pool = Pool(catalogue, progress=progress)
    try:
        yield Observer(pool, progress)
    finally:
        pool.close()


def _title(seen: Observed) -> str:
    name = f"{seen.label}, " if seen.label else ""
    return f"{name}{seen.implementation} on jax {seen.jax}, {seen.topology}"


def _in_later_step(fault: Mapping[str, Any]) -> bool:
    """Return whether a process was at an operation on the result when the cluster faulted."""
    return any(one["in_step"] in LATER for one in fault["processes"])
