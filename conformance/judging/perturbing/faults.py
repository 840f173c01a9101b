"""Perturbations of faults: a crash or hang added, replaced, or moved to another process or step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from conformance.catalogue import names
from conformance.judging.expectation import Fault, Whereabouts
from conformance.judging.judge import WRAPPERS
from conformance.judging.perturbing.case import Case, Perturbation, Seen
from conformance.judging.perturbing.proofs import other_than

ELSEWHERE = 'File "elsewhere.py", line 1 in other'
ANOTHER_STEP = "another step"
SEGMENTATION_FAULT, ABORTED = "SIGSEGV", "SIGABRT"
LONG_S = 12

_IN_STEP = re.compile(r"in step “[^”]*”")
_FRAME = re.compile(r'File "[^"]*", line \d+ in \S+')
_PROCESSES = re.compile(r"process(?:es)? (\d+(?:, \d+)*)")
_SIGNAL = re.compile(r"SIG[A-Z]+")


def _fault(
    name: str, change: Callable[[Case, Fault], Fault | None], *, of_proof: bool = False
) -> Perturbation:
    """A fault in place of the one that was; None where there could be none such."""

    def perturb(case: Case) -> Iterator[Seen]:
        if of_proof and not case.proven:
            return
        new = None if case.seen.fault is None else change(case, case.seen.fault)
        if new is not None:
            yield Seen(case.seen.observations, new)

    return Perturbation(name, perturb)


def _new(name: str, kind: str, detail: str) -> Perturbation:
    """A fault where there was none."""

    def perturb(case: Case) -> Iterator[Seen]:
        if case.seen.fault is None:
            mapped = WRAPPERS.get(case.implementation, ())[:1]
            signal = SEGMENTATION_FAULT if kind == names.CRASHED else None
            yield Seen((), Fault(kind, detail, mapped, (Whereabouts(0, (), "", signal),)))

    return Perturbation(name, perturb)


def hung_in(process: int) -> str:
    """What is said of a hang in one process."""
    return (
        f"no answer within {LONG_S} s from process {process}; process {process} is in {ELSEWHERE}"
    )


def crashed_in(process: int) -> str:
    """What is said of a crash of one process."""
    return f"process {process} was killed by SIGSEGV"


def _of_the_other_kind(case: Case, fault: Fault) -> Fault:
    process = _processes(fault)[0]
    if fault.kind == names.CRASHED:
        there = tuple(replace(one, signal=None, exit=None) for one in fault.processes)
        return replace(fault, kind=names.HUNG, detail=hung_in(process), processes=there)
    there = tuple(replace(one, signal=SEGMENTATION_FAULT) for one in fault.processes)
    return replace(fault, kind=names.CRASHED, detail=crashed_in(process), processes=there)


def _by_another_signal(case: Case, fault: Fault) -> Fault | None:
    if fault.kind != names.CRASHED:
        return None
    other = ABORTED if SEGMENTATION_FAULT in fault.detail else SEGMENTATION_FAULT
    there = tuple(replace(one, signal=one.signal and other) for one in fault.processes)
    return replace(fault, detail=_SIGNAL.sub(other, fault.detail), processes=there)


def _in_another_step(case: Case, fault: Fault) -> Fault:
    """Every process one step further. What says nothing of steps is judged as it is."""
    there = tuple(
        replace(one, finished=(*one.finished, one.in_step), in_step=ANOTHER_STEP)
        if one.in_step
        else one
        for one in fault.processes
    )
    detail = _IN_STEP.sub(f"in step “{ANOTHER_STEP}”", fault.detail)
    return replace(fault, processes=there, detail=detail)


def _in_another_process(case: Case, fault: Fault) -> Fault | None:
    """In those that were not named; where all were, in one of them alone."""
    if case.topology.processes == 1:
        return None
    named = _processes(fault)
    other = next((p for p in range(case.topology.processes) if p not in named), named[-1])
    detail = hung_in(other) if fault.kind == names.HUNG else crashed_in(other)
    frame, signal = _FRAME.search(fault.detail), _SIGNAL.search(fault.detail)
    detail = detail.replace(ELSEWHERE, frame[0]) if frame else detail
    detail = detail.replace(SEGMENTATION_FAULT, signal[0]) if signal else detail
    step = next((one.in_step for one in fault.processes if one.in_step), "")
    died = next(((one.signal, one.exit) for one in fault.processes), (None, None))
    there = [
        Whereabouts(one.process, one.finished, step, *died)
        if one.process == other
        else Whereabouts(one.process, one.finished, "")
        for one in fault.processes
    ]
    there.sort(key=lambda one: one.process != other)
    return replace(fault, detail=detail, processes=tuple(there))


def _processes(fault: Fault) -> list[int]:
    found = _PROCESSES.search(fault.detail)
    return [int(one) for one in found[1].split(", ")] if found else [0]


PERTURBATIONS = (
    _new("fault: a crash where none was", names.CRASHED, crashed_in(0)),
    _new("fault: a hang where none was", names.HUNG, hung_in(0)),
    _fault("fault: a crash for a hang, or the reverse", _of_the_other_kind),
    _fault("fault: another signal", _by_another_signal),
    _fault("fault: in another step", _in_another_step),
    _fault("fault: in another process", _in_another_process),
    _fault(
        "fault: before anything was mapped",
        lambda _, fault: replace(fault, mapped=()),
        of_proof=True,
    ),
    _fault(
        "fault: after another implementation was mapped",
        lambda case, fault: replace(fault, mapped=WRAPPERS[other_than(case.implementation)][:1]),
        of_proof=True,
    ),
)
