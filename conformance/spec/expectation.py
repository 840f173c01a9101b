"""What a clause expects, and how it compares with what happened.

Expectations are pure: they read observations and return findings, each of which can say in a line
what was expected and what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.spec.aspects import (
    COMPARED,
    COMPILED,
    ENDING,
    EXCEPTION,
    OCCURRENCE,
    OUTCOME,
    PHASE,
    SHARDING,
    WARNINGS,
    figure,
    from_below,
)
from conformance.spec.codes import Code, Problem, Values, code_of, figure_of, mistaken
from conformance.spec.comparing import Model, against
from conformance.spec.emissions import EmissionPattern
from conformance.spec.emissions import warning as warning_pattern
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault, everyone
from conformance.spec.names import PHASES
from conformance.spec.observation import Observation, Step
from conformance.spec.texts import text_of
from conformance.spec.topology import Place, Topology

RIGHT_VALUES = "no error, and the right values"  # of a step that was expected to raise


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: in which step and process, whether it holds, expected, seen, and its code.

    `mistake` names the known mistake whose values were seen; `values` says how the values compare
    of a step that returned although an error was expected (`codes.Values`). Both are empty
    otherwise. `error_expected` is whether the failed expectation was an error. `figure` is the key
    of the note that was compared, empty if none was.
    """

    step: str
    process: int
    holds: bool
    expected: str
    saw: str
    code: str = ""
    mistake: str = ""
    values: str = ""
    error_expected: bool = False
    figure: str = ""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The clause does not apply to this implementation, for a reason."""

    reason: str

    @property
    def text(self) -> str:
        """What is expected, for a reader: the reason why nothing is."""
        return f"not applicable: {self.reason}"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Raise TypeError: no cell with this expectation is run."""
        raise TypeError("a cell that is not applicable is not run, so there is nothing to check")


TWICE = ("first call", "second call")  # the steps of `cluster.twice`


@dataclass(frozen=True, slots=True)
class OfEachStep:
    """An expectation about one step of one process at a time.

    `claims` are the `aspects` of a step that it judges; `error` is whether it expects an error;
    `emits` are the warnings and log records that it judges: any other one deviates.
    """

    text: str
    check_step: Callable[[Place, Step], tuple[bool, str]]
    only: tuple[str, ...] = ()
    claims: frozenset[str] = OUTCOME
    error: bool = False
    emits: tuple[EmissionPattern, ...] = ()

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return a finding per process and step, by `check_step`, and one for missing steps.

        A step is missing if `only` names it, or if it is the other call of `cluster.twice`. A
        process without any step fails.
        """
        findings = []
        for seen in observations:
            steps = [s for s in seen.steps if not self.only or s.name in self.only]
            names = {s.name for s in steps}
            # Whoever calls once of `cluster.twice`'s calls the other as well, named or not.
            wanted = set(self.only) or ({*TWICE} if names & {*TWICE} else set())
            missing = wanted - names
            for step in steps:
                holds, saw = self.check_step(Place(topology, seen.process), step)
                code = code_of(self.claims, step, holds, saw)
                found = self._finding(step.name, seen.process, holds, saw, code)
                findings.append(found)
                if isinstance(saw, Problem) and saw.beside is not None and not holds:
                    figure = figure_of(self.claims, saw.beside)
                    findings.append(replace(found, code=saw.beside, figure=figure))
            if not steps or missing:
                absent = ", ".join(sorted(missing)) or "any step"
                saw = "the probe did not get there"
                findings.append(Finding(absent, seen.process, False, self.text, saw, Code.ENDING))
        return findings

    def _finding(self, step: str, process: int, holds: bool, saw: str, code: Code) -> Finding:
        """Return a finding of plain texts, as records store it, with the fields of a problem."""
        figure = figure_of(self.claims, code)
        found = Finding(step, process, holds, self.text, str(saw), code, figure=figure)
        if holds:
            return found
        if isinstance(saw, Problem):
            found = replace(found, mistake=saw.mistake, values=saw.values)
        return replace(found, error_expected=self.error)


@dataclass(frozen=True, slots=True)
class All:
    """Several expectations that must all hold."""

    parts: tuple[Expectation, ...]

    @property
    def text(self) -> str:
        """The texts of the parts."""
        return "; ".join(part.text for part in self.parts)

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return the findings of all parts, in their order."""
        return [f for part in self.parts for f in part.check(topology, observations)]


@dataclass(frozen=True, slots=True)
class Hangs:
    """The case must not finish before its deadline; the judge compares the fault.

    `stuck` are the processes that must then be in `in_step`; the others are in no step.
    """

    in_step: str
    stuck: Callable[[Topology], Iterable[int]]
    text: str

    def elsewhere(self, topology: Topology, fault: Fault) -> str:
        """Return how the processes hang elsewhere than expected; empty if they do not."""
        wanted = set(self.stuck(topology))
        there = {one.process: one.in_step for one in fault.processes}
        wrong = [
            p
            for p in range(topology.processes)
            if there.get(p) != (self.in_step if p in wanted else "")
        ]
        if not wrong:
            return ""
        which = ", ".join(map(str, wrong))
        return f"hangs, but not where it is to: process {which} is not where {self.text}"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return a failed finding per process that finished; the judge compares the fault."""
        return [
            Finding("the case", seen.process, False, self.text, "it came back", Code.ENDING)
            for seen in observations
        ]


def claimed(expectation: Expectation, step: str, jax: str = "") -> frozenset[str]:
    """Return the aspects of the step `step` that an expectation judges, in a release of JAX."""
    found = frozenset[str]()
    for part in parts_about(expectation, step, jax):
        found |= part.claims | {ENDING, OCCURRENCE}
    return found


def parts_about(expectation: Expectation, step: str, jax: str = "") -> Iterator[OfEachStep]:
    """Yield the parts of an expectation that judge the step `step`, in a release of JAX."""
    for part in getattr(expectation, "parts", ()):
        yield from parts_about(part, step, jax)
    if jax and hasattr(expectation, "of_release"):
        yield from parts_about(expectation.of_release(jax), step, jax)
    if isinstance(expectation, OfEachStep) and (not expectation.only or step in expectation.only):
        yield expectation


def not_applicable(reason: str) -> Expectation:
    """Declare that the clause does not apply to this implementation; `reason` is shown in
    the cell.
    """
    return NotApplicable(reason)


def hangs(in_step: str, stuck: Callable[[Topology], Iterable[int]] = everyone) -> Expectation:
    """Expect the processes `stuck` to hang in that step, while the others, past it, wait for them.

    The clause declares a `deadline_s`, and the fault is expected.
    """
    processes = text_of(stuck) or "some processes"
    return Hangs(in_step, stuck, f"{processes} hangs in the step “{in_step}” until the deadline")


def every(*parts: Expectation) -> Expectation:
    """Expect all of `parts`."""
    return All(parts)


def steps(**named: Expectation) -> Expectation:
    """Expect something of each step: `steps(first_call=returns(m), second_call=raises(...))`.

    Underscores in a keyword stand for the spaces in the step's name. Every named step must occur.
    """
    parts = []
    for keyword, expectation in named.items():
        name = keyword.replace("_", " ")
        if not isinstance(expectation, OfEachStep):
            raise TypeError(f"step {name!r}: only returns(), raises() and the like, not a group")
        text = f"{name}: {expectation.text}"
        parts.append(replace(expectation, text=text, only=(name,)))
    return All(tuple(parts))


def in_steps(expected: Expectation, *names: str) -> Expectation:
    """Expect the same of each of these steps, all of which must occur.

    A part of a group that names its own steps keeps them. TypeError if `expected` is about no
    steps, as `hangs` and `not_applicable` are.
    """
    if isinstance(expected, All):
        return All(tuple(in_steps(part, *names) for part in expected.parts))
    if not isinstance(expected, OfEachStep):
        raise TypeError(f"only returns(), raises() and the like have steps, not {expected.text!r}")
    return expected if expected.only else replace(expected, only=names)


def twice(expected: Expectation) -> Expectation:
    """Expect the same of both calls of `cluster.twice`, both of which must occur."""
    return in_steps(expected, *TWICE)


def returns(
    model: Model, *, text: str = "", mistakes: Mapping[str, Model] | None = None
) -> OfEachStep:
    """Expect every step to return what the NumPy model says this process must hold.

    `model(place)` gives one array-like per leaf (a list for several): the values, and thereby the
    shape and dtype, of the part of the result on this process's devices. If the result is that of
    one of the named `mistakes` instead, the finding names it.
    """
    words = text or text_of(model) or "the model's values"

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return False, str(step)
        problem = against(model, place, step)
        if problem is None:
            return True, str(step)
        return False, _named(problem, mistakes or {}, place, step)

    return OfEachStep(f"returns {words}", check_step, claims=COMPARED)


def _named(problem: Problem, mistakes: Mapping[str, Model], place: Place, step: Step) -> Problem:
    """Return a problem with the name of the mistake whose values the step returned, if any."""
    for name, mistake in mistakes.items():
        if against(mistake, place, step) is None:
            return mistaken(name, problem, problem.code)
    return problem


def raises(
    error: type[BaseException] | str,
    pattern: str,
    *,
    phase: str | None = None,
    otherwise: Model | None = None,
    mistakes: Mapping[str, Model] | None = None,
) -> OfEachStep:
    """Expect every step to raise `error` (or a subclass) with a message that matches `pattern`.

    `error` is a type or its bare name (for types of jaxlib, which moved between versions); `phase`,
    if given, is one of `names.PHASES`, else ValueError. `pattern` is a regular expression that is
    searched for. A step that returns fails; with `otherwise` the finding says whether its values
    were right, which distinguishes a missing error from a wrong result, and `mistakes` give wrong
    results their names, as in `returns`.
    """
    name = error if isinstance(error, str) else error.__name__
    if phase is not None and phase not in PHASES:
        raise ValueError(f"phase {phase!r} is none of {', '.join(PHASES)}")
    text = f"raises {name} whose message matches /{pattern}/" + (f" in {phase}" if phase else "")

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        raised = step.raised
        if raised is None:
            if otherwise is None:
                return False, str(step)
            problem = against(otherwise, place, step)
            if mistakes is not None and problem is not None:
                return False, _named(problem, mistakes, place, step)
            return False, returned_instead(step, problem)
        holds = (
            name in (raised.type, *raised.bases)
            and re.search(pattern, raised.message, re.DOTALL) is not None
            and phase in (None, raised.phase)
        )
        return holds, str(step)

    claims = {EXCEPTION} | ({PHASE} if phase else set()) | (COMPARED if otherwise else set())
    return OfEachStep(text, check_step, claims=frozenset(claims), error=True)


def returned_instead(step: Step, problem: Problem | None) -> Problem:
    """Describe a step that returned although an error was expected.

    `problem` is how its values differ from the right ones; None if they do not.
    """
    if problem is None:
        return Problem(f"{RIGHT_VALUES}: {step}", Code.ERROR, values=Values.RIGHT)
    if problem.code is Code.CONTAINER:
        return problem.framed(f"{RIGHT_VALUES}, but ", values=Values.RIGHT)
    unread = any(leaf.local is None for leaf in step.leaves)
    return problem.framed("WRONG: ", values=Values.UNREAD if unread else Values.WRONG)


def warns(category: type[Warning], pattern: str, *, times: int = 1) -> OfEachStep:
    """Expect every step to emit a warning of `category` that matches `pattern`, `times` times."""
    wanted = warning_pattern(category.__name__, pattern)
    text = f"warns {times} times by {category.__name__} with /{pattern}/"

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        count = sum(one["count"] for one in step.warnings if wanted.agrees(one))
        return count == times, Problem(f"{count} such warnings; {step}", Code.WARNING)

    return OfEachStep(text, check_step, claims=frozenset({WARNINGS}), emits=(wanted,))


def sharded(
    text: str,
    holds: Callable[[Place, Mapping[str, Any]], bool],
    *,
    claims: frozenset[str] = SHARDING,
) -> OfEachStep:
    """Expect every leaf of every step to have a sharding for which `holds(place, sharding)`.

    A sharding is a record of `type`, `spec`, `mesh` (axis name -> size), `devices` (ids in order)
    and `memory_kind`; `claims` names the parts that `holds` reads, if not type and spec.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return False, str(step)
        shardings = [leaf.sharding for leaf in step.leaves]
        if not shardings or None in shardings:
            return False, "no sharding: the result is no jax.Array"
        saw = ", ".join(_sharding_text(s) for s in shardings if s)
        return all(holds(place, s) for s in shardings if s), saw

    return OfEachStep(text, check_step, claims=claims)


def along(*axes: str | None) -> Callable[[Place, Mapping[str, Any]], bool]:
    """Return whether it is a NamedSharding with this spec, without trailing None, for `sharded`."""
    wanted = _without_trailing_none(axes)

    def holds(place: Place, sharding: Mapping[str, Any]) -> bool:
        if sharding["type"] != "NamedSharding":
            return False
        return _without_trailing_none(sharding["spec"]) == wanted

    return holds


def _without_trailing_none(spec: Sequence[Any]) -> list[Any]:
    parts = list(spec)
    while parts and parts[-1] is None:
        parts.pop()
    return parts


def noted(
    key: str,
    text: str,
    holds: Callable[[Place, Any], bool],
    *,
    show: Callable[[Any], str] | None = None,
    parts: Iterable[str] = (),
    at_most: bool = False,
    compiled: bool = False,
) -> OfEachStep:
    """Expect every step to note `key` (`cluster.note(key, value)`) with a value for which `holds`.

    `show` describes the value, if printing it would not. `parts` are the entries of a record that
    `holds` reads, if not all; `at_most` marks an upper bound, for which less, or none, is right
    too; `compiled` marks a value that is read from compiled programs, and can be judged if they are
    only compiled.
    """
    claims = {figure(key), *(figure(key, part) for part in parts)}
    claims |= set() if at_most else {from_below(key)}
    claims |= {COMPILED} if compiled else set()

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if key not in step.extra:
            return False, f"nothing noted as {key!r}; {step}"
        value = step.extra[key]
        return holds(place, value), f"{key} = {value}" if show is None else show(value)

    return OfEachStep(text, check_step, claims=frozenset(claims))


def _sharding_text(sharding: Mapping[str, Any]) -> str:
    mesh = ", ".join(f"{k}: {v}" for k, v in (sharding.get("mesh") or {}).items())
    spec, devices = sharding.get("spec", ""), sharding["devices"]
    return f"{sharding['type']}({spec}) mesh ({mesh}) devices {devices}"
