"""Perturbations of how a step ended: another exception, none, an unexpected one; steps missing or
added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from conformance.mutation.perturbing.case import (
    Case,
    Change,
    Perturbation,
    Seen,
    failure,
    in_all_processes,
    in_one_process,
    of_observation,
)
from conformance.spec import aspects
from conformance.spec.names import PHASES
from conformance.spec.observation import OUTSIDE, Leaf, Observation, Raised, Step

ANOTHER_STEP = "another step"
ANOTHER_TEXT = "something else went wrong"

GARBAGE = Leaf("", "ArrayImpl", (), "int32", np.zeros((), np.int32), False, True)


def _raised(change: Callable[[Case, Raised], Raised | None]) -> Change:
    def perturb_step(case: Case, step: Step, beside: Step | None) -> Step | None:
        new = None if step.raised is None else change(case, step.raised)
        return None if new is None else replace(step, raised=new)

    return perturb_step


def _type(case: Case, raised: Raised) -> Raised:
    is_type_error = "TypeError" in (raised.type, *raised.bases)
    name = "ValueError" if is_type_error else "TypeError"
    return replace(raised, type=name, bases=("Exception", "BaseException"))


def _bases(case: Case, raised: Raised) -> Raised:
    """Return an exception of the same name that is caught as no other than an Exception."""
    of_all = ("Exception", "BaseException")
    another = ("LookupError", *of_all) if set(raised.bases) == set(of_all) else of_all
    return replace(raised, bases=another)


def _text(case: Case, raised: Raised) -> Raised:
    return replace(raised, message=ANOTHER_TEXT)


def _another(case: Case, raised: Raised) -> Raised | None:
    message = case.messages.another(raised)
    return None if message is None else replace(raised, message=message)


def _phase(case: Case, raised: Raised) -> Raised:
    return replace(raised, phase=PHASES[(PHASES.index(raised.phase) + 1) % len(PHASES)])


def _returned(case: Case, step: Step, beside: Step | None) -> Step | None:
    return replace(step, raised=None, leaves=(GARBAGE,)) if step.raised else None


def _failed(case: Case, step: Step, beside: Step | None) -> Step | None:
    return None if step.raised else replace(step, raised=failure(), leaves=())


def _missing(name: str, *, everywhere: bool) -> Perturbation:
    def perturb(case: Case) -> Iterator[Seen]:
        observations = case.seen.observations
        if case.seen.fault is not None or (everywhere and len(observations) == 1):
            return
        for step in case.steps:
            if aspects.OCCURRENCE in case.claims(step):
                before = observations if everywhere else observations[-1:]
                if any(one.name == step for o in before for one in o.steps):
                    after = tuple(_without(o, step) for o in before)
                    yield Seen((*observations[: -len(before)], *after))

    return Perturbation(name, perturb)


def _without(seen: Observation, step: str) -> Observation:
    return replace(seen, steps=tuple(one for one in seen.steps if one.name != step))


def _added(step: Step) -> Callable[[Case, Observation], Observation]:
    return lambda case, seen: replace(seen, steps=(*seen.steps, step))


def _outside(case: Case) -> Iterator[Seen]:
    """Yield cells in which each process raises before the step."""
    if case.seen.fault is not None:
        return
    for step in case.steps:
        yield Seen(tuple(_until(seen, step) for seen in case.seen.observations))


def _until(seen: Observation, step: str) -> Observation:
    at = next((n for n, one in enumerate(seen.steps) if one.name == step), None)
    if at is None:
        return seen
    raised = seen.steps[at].raised or failure()
    return replace(seen, steps=(*seen.steps[:at], Step(OUTSIDE, raised=raised)))


PERTURBATIONS = (
    in_one_process("exception: type", aspects.EXCEPTION, _raised(_type)),
    in_one_process("exception: base classes", aspects.EXCEPTION, _raised(_bases)),
    in_one_process("exception: unheard-of text", aspects.EXCEPTION, _raised(_text)),
    in_one_process("exception: another of JAX's texts", aspects.EXCEPTION, _raised(_another)),
    in_one_process("exception: phase", aspects.PHASE, _raised(_phase)),
    in_one_process("exception: none, in one process", aspects.ENDING, _returned),
    in_all_processes("exception: none, in all", aspects.ENDING, _returned),
    in_one_process("exception: one where none was, in one process", aspects.ENDING, _failed),
    in_all_processes("exception: one where none was, in all", aspects.ENDING, _failed),
    _missing("step: missing, in one process", everywhere=False),
    _missing("step: missing, in all", everywhere=True),
    of_observation("step: added", _added(Step(ANOTHER_STEP, (GARBAGE,)))),
    of_observation("step: added, failing", _added(Step(ANOTHER_STEP, raised=failure()))),
    Perturbation("step: raised outside of it", _outside),
)
