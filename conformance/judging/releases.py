"""What is expected of JAX by release: one thing up to a release, another from it on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.catalogue.topology import Topology
from conformance.judging.codes import Code
from conformance.judging.expectation import All, Expectation, Finding
from conformance.judging.observation import Observation


def numbers(version: str) -> tuple[int, ...]:
    """The release in a version: `0.10.0.dev5` is of 0.10.0."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@dataclass(frozen=True, slots=True)
class ByRelease:
    """`before` of each JAX older than `release`, `since` of that one and all later ones."""

    release: str
    before: Expectation
    since: Expectation

    @property
    def text(self) -> str:
        return f"before {self.release}: {self.before.text}; since then: {self.since.text}"

    def of_release(self, jax: str) -> Expectation:
        """What is expected of this release."""
        return self.before if numbers(jax) < numbers(self.release) else self.since

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        found = []
        for seen in observations:
            found += self.of_release(seen.jax).check(topology, [seen])
        return found


@dataclass(frozen=True, slots=True)
class Absent:
    """No step of this name, as what it calls is gone."""

    step: str
    why: str

    @property
    def text(self) -> str:
        return f"no {self.step}: {self.why}"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        found = []
        for seen in observations:
            there = [str(step) for step in seen.steps if step.name == self.step]
            saw = "; ".join(there) or self.why
            found.append(Finding(self.step, seen.process, not there, self.text, saw, Code.ENDING))
        return found


def by_release(release: str, *, before: Expectation, since: Expectation) -> Expectation:
    """What changed with a release; told from the JAX that was observed."""
    return ByRelease(release, before, since)


def absent(step: str, why: str) -> Expectation:
    """The probe must leave out this step: what it calls is not there any more."""
    return Absent(step, why)


def changes(expectation: Expectation) -> bool:
    """Return whether what is expected differs between releases, as a whole or in a part."""
    if isinstance(expectation, All):
        return any(map(changes, expectation.parts))
    return isinstance(expectation, ByRelease)
