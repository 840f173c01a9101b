"""The multi-controller tutorial: parts that the modules about it share.

Most of its programs map no function: they test JAX itself, on arrays that span the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.aspects import COMPARED, figure
from conformance.spec.codes import Code, Problem
from conformance.spec.combining import by_process
from conformance.spec.containers import flattened
from conformance.spec.expectation import Finding, OfEachStep, raises
from conformance.spec.observation import Observation, Step
from conformance.spec.topology import Place, Topology
from conformance.worker.protocols import Cluster

TEXT = "text"
WIDTH = 3  # of a row

# The fixes named by an error about data in other processes.
ELSEWHERE = (
    r"spans non-addressable \(non process local\) devices is not possible\. .*"
    r"`jax\.experimental\.multihost_utils\.process_allgather` .*`\.addressable_shards`"
)
NOT_HERE = raises(RuntimeError, ELSEWHERE, phase="fetch")


def spread(mesh: jax.sharding.Mesh, *spec: str | None) -> jax.sharding.NamedSharding:
    """The NamedSharding of a spec on a mesh."""
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def row_of(devices: Sequence[jax.Device]) -> jax.sharding.Mesh:
    """A 1-D mesh of devices in their order, whose axis `a` is of no type that changes programs."""
    return jax.sharding.Mesh(np.array(devices), ("a",))


def local_parts(array: Any) -> list[Any]:
    """Return this process's shards of an array, by device; an empty list if it has none."""
    shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    return [np.asarray(shard.data) for shard in shards]


def say(cluster: Cluster, name: str, function: Callable[[], str]) -> None:
    """A step whose result is a text, which is noted."""
    text = cluster.step(name, function)
    if text is not None:
        cluster.note(TEXT, text)


def notes_text(said: str, wanted: Callable[[Place], str]) -> OfEachStep:
    """Every step notes this text; `said` is what the text is, in words."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None or TEXT not in step.extra:
            return False, str(step)
        text = step.extra[TEXT]
        return text == wanted(place), f"said {text!r}"

    return OfEachStep(f"says {said}", check_step, claims=frozenset({figure(TEXT)}))


ALONE = flattened(0.0)[1]  # the structure of one value in no container


def near(exact: Callable[[Place], float], said: str, tolerance: float = 2e-6) -> OfEachStep:
    """Every step returns one float32, that number up to rounding.

    The tolerance is absolute: a sum of sines is small beside its terms.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None or len(step.leaves) != 1:
            return False, str(step)
        leaf = step.leaves[0]
        if leaf.local is None or leaf.shape != () or leaf.dtype != "float32":
            return False, f"no float32 number: {step}"
        if step.tree not in (None, ALONE):
            return False, Problem(f"{step.tree} in place of {ALONE}: {step}", Code.CONTAINER)
        return bool(abs(float(leaf.local) - exact(place)) <= tolerance), str(step)

    return OfEachStep(f"returns {said}", check_step, claims=COMPARED)


def in_second_half(place: Place) -> bool:
    """Return whether this process is in the second half of them."""
    return 2 * place.process >= place.topology.processes


def by_half(first: OfEachStep, second: OfEachStep) -> OfEachStep:
    """One thing of the first half of the processes, another of the second."""
    text = f"the first half of the processes {first.text}; the second half {second.text}"
    return by_process(in_second_half, second, first, text)


@dataclass(frozen=True, slots=True)
class Across:
    """An expectation of the values that all processes noted as `key` in each step, in process
    order.
    """

    key: str
    text: str
    holds: Callable[[list[Any]], bool]

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        findings = []
        for name in dict.fromkeys(s.name for o in observations for s in o.steps):
            noted = [
                s.extra.get(self.key)
                for o in sorted(observations, key=lambda one: one.process)
                for s in o.steps
                if s.name == name
            ]
            complete = len(noted) == topology.processes and None not in noted
            right = complete and self.holds(noted)
            findings += [
                Finding(
                    name,
                    o.process,
                    right,
                    self.text,
                    f"{self.key} of all: {noted}",
                    Code.NOTE,
                    figure=self.key,
                )
                for o in observations
            ]
        return findings


def alike(key: str, what: str) -> Across:
    """All processes noted the same."""
    return Across(
        key, f"{what}: the same in every process", lambda noted: all(n == noted[0] for n in noted)
    )
