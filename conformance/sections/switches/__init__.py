"""The switches between legacy and new pmap, and what each of them selects.

Every program runs in a new process. The implementation that ran is proven by the kind of the
wrapper and the sharding of its results, never by a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.spec.columns import Columns
from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, every, in_steps, not_applicable, returns
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.topology import Place
from conformance.worker import child
from conformance.worker.child_programs import ROWS
from conformance.worker.protocols import Cluster

PROGRAM = "the program"  # the one step of what runs in a process of its own
PROGRAMS = "conformance.worker.child_programs"
VARIABLE = "JAX_PMAP_SHMAP_MERGE"
FLAG_FALSE, FLAG_TRUE = "--jax_pmap_shmap_merge=false", "--jax_pmap_shmap_merge=true"
DEADLINE_S = 90.0  # of a case; a child's own deadline ends before it


WRAPPER = {LEGACY_PMAP: "legacy pmap", NEW_PMAP: "new pmap"}
SHARDING = {LEGACY_PMAP: "PmapSharding", NEW_PMAP: "NamedSharding"}

NO_SWITCH = not_applicable("the switch chooses between the two pmaps")
ASKS_FOR_OLD = not_applicable("the value asks for the old pmap")
OF_A_PROCESS = "the result does not depend on the number of processes"

NEW_BY_DEFAULT = "0.8.0"
REMOVED_IN = "0.10.0"  # the release without the old pmap, its switches and its names


def follow(
    cluster: Cluster, program: str, *words: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run a program of `child_programs` in a new process, as one step.

    Its value is the result of each of the program's calls; noted are, for each call, what ran, and
    the warnings that the program caused.
    """
    answers: list[child.Answer] = []

    def wait() -> list[Any]:
        variables = child.ON_TWO_DEVICES | dict(environment or {})
        answers.append(child.run(PROGRAMS, program, *words, environment=variables))
        return [np.array(call["values"], np.float32) for call in answers[0].result()]

    cluster.step(PROGRAM, wait)
    if answers:
        cluster.note("warned", answers[0].warnings)
        if answers[0].failure is None:
            ran = [f"{call['wrapper']} -> {call['sharding']}" for call in answers[0].value]
            cluster.note("ran", ran)


def results(calls: int) -> Model:
    """The child's rows plus their sum, as many times as there are calls."""
    rows = np.array(ROWS, np.float32)
    return lambda place: [rows + rows.sum(0)] * calls


def ran(*implementations: str) -> Expectation:
    """Each call ran the implementation named, and returned the right values."""
    wanted = [name_of(name) for name in implementations]

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        return what_ran(step) == wanted, saw_run(step)

    said = f"the calls run the {', '.join(WRAPPER[name] for name in implementations)}"
    values = returns(results(len(wanted)), text="the rows plus their sum, at every call")
    return of_program(every(OfEachStep(said, check_step), values))


def of_program(expected: Expectation) -> Expectation:
    """Expect this of the child's program; an error of the probe itself is judged separately."""
    return in_steps(expected, PROGRAM)


def name_of(implementation: str) -> str:
    """Return the name under which `follow` notes a call of this implementation."""
    return f"{WRAPPER[implementation]} -> {SHARDING[implementation]}"


def what_ran(step: Step) -> list[str] | None:
    """Return what each of the child's calls ran; None if it made none."""
    return step.extra.get("ran")


def saw_run(step: Step) -> str:
    """Describe what ran, or how the program failed."""
    return str(step) if step.raised else f"ran {', '.join(what_ran(step) or ['nothing'])}"


def saw_warnings(step: Step) -> str:
    """All warnings of the program, in words."""
    texts = [
        f"{w['category']} given {w['count']}x, shown {w['shown']}x: {w['message']}"
        for w in step.extra.get("warned", ())
    ]
    return "; ".join(texts) or "no warning"


def only_old(expected: Expectation) -> Columns:
    """Return the columns of a program that selects legacy pmap."""
    return {LEGACY_PMAP: expected, NEW_PMAP: ASKS_FOR_OLD, SHARD_MAP: NO_SWITCH}


# Two calls must run the selected implementation.
BOTH: Columns = {
    LEGACY_PMAP: ran(LEGACY_PMAP, LEGACY_PMAP),
    NEW_PMAP: ran(NEW_PMAP, NEW_PMAP),
    SHARD_MAP: NO_SWITCH,
}
OLD_ALONE = only_old(ran(LEGACY_PMAP, LEGACY_PMAP))


@dataclass(frozen=True, slots=True)
class Value:
    """A value that says false, and the one of the same kind that says true where it is tried."""

    key: str
    fact: str
    false: str
    true: str | None = None

    def setting_for(self, implementation: str) -> str:
        """Return the value that selects this implementation."""
        return self.false if implementation == LEGACY_PMAP else self.true or ""

    @property
    def columns(self) -> Columns:
        """Both implementations where both values are tried, else the old one."""
        return BOTH if self.true is not None else OLD_ALONE
