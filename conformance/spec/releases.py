"""Expectations that change with a release of JAX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.spec.codes import Code
from conformance.spec.expectation import All, Finding
from conformance.spec.expected import Expectation
from conformance.spec.observation import Observation
from conformance.spec.topology import Topology


def numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version: `0.10.0.dev5` belongs to 0.10.0."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@dataclass(frozen=True, slots=True)
class ByRelease:
    """Expect `before` of every JAX older than `release`, `since` of that and all later ones."""

    release: str
    before: Expectation
    since: Expectation

    @property
    def text(self) -> str:
        """Both expectations, with the release between them."""
        return f"before {self.release}: {self.before.text}; since then: {self.since.text}"

    def of_release(self, jax: str) -> Expectation:
        """Return the expectation of this release."""
        return self.before if numbers(jax) < numbers(self.release) else self.since

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return the findings of the expectation that applies to the JAX of each observation."""
        found = []
        for seen in observations:
            found += self.of_release(seen.jax).check(topology, [seen])
        return found


@dataclass(frozen=True, slots=True)
class Absent:
    """Expect no step of this name, because what it calls was removed."""

    step: str
    why: str

    @property
    def text(self) -> str:
        """What is absent, and why."""
        return f"no {self.step}: {self.why}"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return a finding per process, which fails if the process has a step of this name."""
        found = []
        for seen in observations:
            there = [str(step) for step in seen.steps if step.name == self.step]
            saw = "; ".join(there) or self.why
            found.append(Finding(self.step, seen.process, not there, self.text, saw, Code.ENDING))
        return found


def by_release(release: str, *, before: Expectation, since: Expectation) -> Expectation:
    """Declare a change with a release; the JAX that was observed decides."""
    return ByRelease(release, before, since)


def absent(step: str, why: str) -> Expectation:
    """Expect the probe to leave out this step, because what it calls was removed."""
    return Absent(step, why)


def changes(expectation: Expectation) -> bool:
    """Return whether the expectation, or a part of it, differs between releases."""
    if isinstance(expectation, All):
        return any(map(changes, expectation.parts))
    return isinstance(expectation, ByRelease)
