"""Perturbations of faults: a crash or hang added, replaced, or moved to another process or step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from conformance.judging.judge import WRAPPERS
from conformance.model.verdicts import Verdict
from conformance.mutation.perturbing.case import Case, Perturbation, Seen
from conformance.mutation.perturbing.proofs import other_than
from conformance.spec.faults import Fault, Whereabouts

ANOTHER_STEP = "another step"
SEGMENTATION_FAULT, ABORTED = "SIGSEGV", "SIGABRT"


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


def _new(name: str, kind: Verdict) -> Perturbation:
    """A fault where there was none."""

    def perturb(case: Case) -> Iterator[Seen]:
        if case.seen.fault is None:
            mapped = WRAPPERS.get(case.implementation, ())[:1]
            signal = SEGMENTATION_FAULT if kind == Verdict.CRASHED else None
            yield Seen((), _made(kind, mapped, (Whereabouts(0, (), "", signal),)))

    return Perturbation(name, perturb)


def _made(kind: str, mapped: tuple[str, ...], processes: Iterable[Whereabouts]) -> Fault:
    """Return a fault with its text for readers, which the judge only repeats."""
    there = tuple(processes)
    how = [one.signal or f"in step “{one.in_step}”" for one in there[:1]]
    where = f"process {there[0].process}, {how[0]}" if there else "no process"
    return Fault(kind, f"perturbed: {kind}: {where}", mapped, there)


def _of_the_other_kind(case: Case, fault: Fault) -> Fault:
    if fault.kind == Verdict.CRASHED:
        there = [replace(one, signal=None, exit=None) for one in fault.processes]
        return _made(Verdict.HUNG, fault.mapped, there)
    there = [replace(one, signal=SEGMENTATION_FAULT) for one in fault.processes]
    return _made(Verdict.CRASHED, fault.mapped, there)


def _by_another_signal(case: Case, fault: Fault) -> Fault | None:
    if fault.kind != Verdict.CRASHED:
        return None
    seen = {one.signal for one in fault.processes}
    other = ABORTED if SEGMENTATION_FAULT in seen else SEGMENTATION_FAULT
    there = [replace(one, signal=one.signal and other) for one in fault.processes]
    return _made(fault.kind, fault.mapped, there)


def _in_another_step(case: Case, fault: Fault) -> Fault:
    """Move every process one step further; a fault without steps stays as it is."""
    there = [
        replace(one, finished=(*one.finished, one.in_step), in_step=ANOTHER_STEP)
        if one.in_step
        else one
        for one in fault.processes
    ]
    return _made(fault.kind, fault.mapped, there)


def _in_another_process(case: Case, fault: Fault) -> Fault | None:
    """Name the other processes; if all were named, only one of them."""
    if case.topology.processes == 1:
        return None
    failed = _failed(fault)
    other = next((p for p in range(case.topology.processes) if p not in failed), failed[-1])
    step = next((one.in_step for one in fault.processes if one.in_step), "")
    died = next(((one.signal, one.exit) for one in fault.processes), (None, None))
    there = [
        Whereabouts(one.process, one.finished, step, *died)
        if one.process == other
        else Whereabouts(one.process, one.finished, "")
        for one in fault.processes
    ]
    there.sort(key=lambda one: one.process != other)
    return _made(fault.kind, fault.mapped, there)


def _failed(fault: Fault) -> list[int]:
    """Return the process that crashed first, or all that hung in a step; 0 if none is recorded."""
    first = [one.process for one in fault.processes[:1]] or [0]
    if fault.kind == Verdict.CRASHED:
        return first
    return sorted(one.process for one in fault.processes if one.in_step) or first


PERTURBATIONS = (
    _new("fault: a crash where none was", Verdict.CRASHED),
    _new("fault: a hang where none was", Verdict.HUNG),
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
