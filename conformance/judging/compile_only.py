"""Judge a case whose programs were compiled for devices that are not there.

Its steps ran on other devices. Right values there show that the case ran as it should, and prove
nothing about the devices in question; the compiled programs do. So each finding says which it is,
and other measurements of the devices that ran are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.spec.aspects import COMPILED, SHARDING_TYPE, SPEC, is_figure
from conformance.spec.expectation import All, Finding, OfEachStep
from conformance.spec.expected import Expectation
from conformance.spec.observation import Observation, Step
from conformance.spec.topology import Place, Topology

NOT_RUN = "compiled, not run"
DRIVEN = "where its steps were taken, on CPU: "
LEFT_OUT = "left out: "

# What is said of programs for which a TPU has to be there: one that calls back into its process, in
# 0.9 one whose collective leaves out the first devices, and a legacy pmap under jit.
_NEEDS_DEVICES = (
    "the platform for the specified backend",
    "kMaxDeviceCount",
    "has no attribute 'local_devices'",
)

# Where a result lies is said by its program too.
STRUCTURE = frozenset({COMPILED, SHARDING_TYPE, SPEC})


def structural(expectation: Expectation) -> bool:
    """Return whether anything expected is read from compiled programs."""
    if isinstance(expectation, All):
        return any(map(structural, expectation.parts))
    return isinstance(expectation, OfEachStep) and bool(expectation.claims & STRUCTURE)


def excuse(expectation: Expectation) -> str | None:
    """Return why a cell cannot be judged by compiled programs; None if it can."""
    if structural(expectation):
        return None
    return f"{NOT_RUN}: nothing that this clause looks at is read off compiled programs"


def impossible(some: Sequence[Observation]) -> str | None:
    """Return why nothing can be judged in a case that was tried; None if something can."""
    raised = next((s for one in some for s in one.steps if s.raised is not None), None)
    if raised is not None:
        return f"{NOT_RUN}: the step “{raised.name}” raised where it was taken, on CPU"
    compiled = [one.compiled or {} for one in some]
    failed = [text for one in compiled for text in one.get("failed", ())]
    unable = next((text for text in failed if any(one in text for one in _NEEDS_DEVICES)), None)
    if unable is not None:
        return f"{NOT_RUN}: without a TPU there is no compiling of {unable}"
    if not failed and not any(one.get("programs") for one in compiled):
        return f"{NOT_RUN}: no program is compiled in this case"
    return None


def labelled(expectation: Expectation) -> Expectation:
    """Return the expectation with every part that is not about compiled programs marked so."""
    if isinstance(expectation, All):
        return replace(expectation, parts=tuple(map(labelled, expectation.parts)))
    if not isinstance(expectation, OfEachStep) or structural(expectation):
        return expectation
    if any(map(is_figure, expectation.claims)):
        return replace(expectation, text=LEFT_OUT + expectation.text, check_step=_not_compared)
    return replace(expectation, text=DRIVEN + expectation.text)


def _not_compared(place: Place, step: Step) -> tuple[bool, str]:
    return step.raised is None, f"not compared: {NOT_RUN}" if step.raised is None else str(step)


def describe_compilation(seen: Observation) -> str:
    """Return text such as `compiled for 8 TPU v5 lite, not run`."""
    compiled = seen.compiled or {}
    return f"compiled for {compiled.get('chips')} {compiled.get('chip')}, not run"


def first_of(findings: Sequence[Finding], expectation: Expectation) -> Finding:
    """Return the first finding about compiled programs, else the first of all."""
    texts = set(_structural_texts(expectation))
    return next((f for f in findings if f.expected in texts), findings[0])


def _structural_texts(expectation: Expectation) -> Iterator[str]:
    if isinstance(expectation, All):
        for part in expectation.parts:
            yield from _structural_texts(part)
    elif not isinstance(expectation, OfEachStep) or structural(expectation):
        yield expectation.text


def proofs(seen: Observation, topology: Topology, step: str) -> list[Finding]:
    """Return findings that every program was compiled for enough devices, with the same output
    placement.
    """
    compiled = seen.compiled or {}

    def finding(holds: bool, expected: str, saw: str) -> Finding:
        return Finding(step, seen.process, holds, expected, saw)

    chips, count = compiled.get("chips"), compiled.get("programs", 0)
    wrong = [*compiled.get("failed", ()), *compiled.get("differing", ())]
    return [
        finding(
            chips == topology.devices,
            f"compiled for {topology.devices} chips",
            f"compiled for {chips} chips of {compiled.get('chip')} by libtpu "
            f"{compiled.get('libtpu')}",
        ),
        finding(
            count > 0 and not wrong,
            "every program compiled, its results placed as where the steps were taken",
            f"{count} programs; " + ("; ".join(wrong) or "placed alike"),
        ),
    ]
