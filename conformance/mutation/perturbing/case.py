"""The input of a perturbation: a recorded cell, and what its clause claims of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from conformance.judging.deviations import Deviation
from conformance.judging.judge import WRAPPERS, Judgement, judge
from conformance.mutation.perturbing.messages import Messages
from conformance.spec.aspects import OUTCOME, PHASE
from conformance.spec.clause import Clause
from conformance.spec.expectation import claimed
from conformance.spec.faults import Fault
from conformance.spec.observation import Observation, Raised, Step
from conformance.spec.topology import Topology


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a cell that is judged."""

    observations: tuple[Observation, ...]
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded cell; `failed` are the steps in which an excused cell deviates."""

    clause: Clause
    implementation: str
    topology: Topology
    jax: str
    seen: Seen
    entries: tuple[Deviation, ...] = ()
    failed: frozenset[str] = frozenset()
    messages: Messages = field(default_factory=Messages)

    def judged(self, seen: Seen) -> Judgement:
        """Return the verdict of the cell with other observations."""
        return judge(
            self.clause,
            self.implementation,
            self.topology,
            self.jax,
            seen.observations,
            seen.fault,
            self.entries,
        )

    @property
    def excused(self) -> bool:
        """Return whether an entry says that the cell deviates."""
        return any(entry.warns is None for entry in self.entries)

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps of all processes, in order."""
        return tuple(dict.fromkeys(s.name for o in self.seen.observations for s in o.steps))

    @property
    def proven(self) -> bool:
        """Return whether the judge must find out which implementation ran."""
        return not self.clause.selects and self.implementation in WRAPPERS

    def claims(self, step: str) -> frozenset[str]:
        """Return the aspects that the clause claims of a step, and those that an entry claims."""
        found = claimed(self.clause.expect[self.implementation], step, self.jax)
        if step in self.failed and found & OUTCOME:
            found |= OUTCOME
            if any("phase" in entry.seen for entry in self.entries):
                found |= {PHASE}
        return found


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One way in which an observation could be wrong: its name, and the function that
    applies it.
    """

    name: str
    of: Callable[[Case], Iterator[Seen]]


# The step as it was, and the same step in another process, None where there is none; None is
# returned where the perturbation would change nothing.
Change = Callable[[Case, Step, Step | None], Step | None]


def in_one_process(name: str, aspect: str, change: Change) -> Perturbation:
    """Perturb each step that claims `aspect` in one process only, where it is least visible."""

    def perturb(case: Case) -> Iterator[Seen]:
        for step in _claiming(case, aspect):
            for at in reversed(range(len(case.seen.observations))):
                changed = _changed(case, step, change, [at])
                if changed is not None:
                    yield changed
                    break

    return Perturbation(name, perturb)


def in_all_processes(name: str, aspect: str, change: Change) -> Perturbation:
    """Perturb each step that claims `aspect` in every process, if there are several."""

    def perturb(case: Case) -> Iterator[Seen]:
        everyone = range(len(case.seen.observations))
        if len(everyone) > 1:
            for step in _claiming(case, aspect):
                changed = _changed(case, step, change, everyone)
                if changed is not None:
                    yield changed

    return Perturbation(name, perturb)


def of_observation(
    name: str, change: Callable[[Case, Observation], Observation | None], *, of_proof: bool = False
) -> Perturbation:
    """Perturb the last process's observation; `of_proof` if only proofs of the implementation read
    it.
    """

    def perturb(case: Case) -> Iterator[Seen]:
        if case.seen.fault is not None or not case.seen.observations:
            return
        if of_proof and not case.proven:
            return
        *others, last = case.seen.observations
        changed = change(case, last)
        if changed is not None:
            yield Seen((*others, changed))

    return Perturbation(name, perturb)


def failure(message: str = "INTERNAL: something else went wrong") -> Raised:
    """Return an error that no clause expects."""
    bases = ("RuntimeError", "Exception", "BaseException")
    return Raised("XlaRuntimeError", bases, "execute", message, ("elsewhere.py:other",))


def _claiming(case: Case, aspect: str) -> Iterable[str]:
    if case.seen.fault is None:
        yield from (step for step in case.steps if aspect in case.claims(step))


def _changed(case: Case, step: str, change: Change, where: Sequence[int]) -> Seen | None:
    observations = list(case.seen.observations)
    any_changed = False
    for at in where:
        other = observations[(at + 1) % len(observations)] if len(observations) > 1 else None
        beside = next((s for s in other.steps if s.name == step), None) if other else None
        new = []
        for one in observations[at].steps:
            changed = change(case, one, beside) if one.name == step else None
            any_changed |= changed is not None
            new.append(one if changed is None else changed)
        observations[at] = replace(observations[at], steps=tuple(new))
    return Seen(tuple(observations)) if any_changed else None
