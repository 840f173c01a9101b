"""From a clause and its observations to a verdict: no JAX, no processes, no files.

A cell conforms only if it proves three things: that its implementation ran, in its JAX, on all
processes; that every step was compared; and that each comparison held. Anything less deviates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.judging import compile_only
from conformance.judging.defaults import check_defaults, silent_entries
from conformance.judging.deviations import Deviation
from conformance.judging.mismatch import mismatch
from conformance.judging.seen import steps_of
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Clause
from conformance.spec.codes import Code
from conformance.spec.expectation import Finding, Hangs
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault
from conformance.spec.observation import OUTSIDE, Observation, Witness, shortened
from conformance.spec.topology import Topology

PMAP_SHARDING = "PmapSharding"
SHARDING = "Sharding"  # the end of the name of every sharding's type
SHARD_MAP_PRIMITIVE = "shard_map"  # which the new pmap is made of as well
TRACED = "traced"

# How XLA's allocators begin: nothing is known of the clause, but that it needs more than there is.
_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
_ABSENT = re.compile(r"module 'jax[\w.]*' has no attribute '\w+'$")

# The kind of wrapper (`implementations.wrapper_kind`) that proves each implementation.
WRAPPERS: Mapping[str, tuple[str, ...]] = {
    names.LEGACY_PMAP: ("legacy pmap",),
    names.NEW_PMAP: ("new pmap",),
    names.SHARD_MAP: ("jit(shard_map)", "shard_map", "smap"),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its reason in a line, what was compared, and the deviation entry that
    explains it.
    """

    verdict: str
    reason: str
    findings: tuple[Finding, ...] = ()
    deviation: Deviation | None = None


def judge(
    clause: Clause,
    implementation: str,
    topology: Topology,
    jax: str,
    observations: Sequence[Observation],
    fault: Fault | None,
    deviations: Sequence[Deviation] = (),
) -> Judgement:
    """Return the verdict of one cell; `deviations` are the entries that match it."""
    entries = [entry for entry in deviations if entry.warns is None]
    warned = [entry for entry in deviations if entry.warns is not None]
    seen = _compare(clause, implementation, topology, jax, observations, fault, warned)
    if seen.verdict == Verdict.NOT_APPLICABLE:
        return seen
    silent = [] if fault else silent_entries(warned, observations)
    if silent:
        reason = f"{silent[0].where} says that a step emits {silent[0].seen}, but none does"
        return Judgement(Verdict.DEVIATES, reason, seen.findings)
    if not entries:
        return seen
    entry = entries[0]
    if seen.verdict == Verdict.CONFORMS:
        return Judgement(
            Verdict.DEVIATES,
            f"{entry.where} says that this cell deviates, but it conforms: "
            "remove or narrow the entry",
            seen.findings,
        )
    unproven = [f for f in seen.findings if f.step == PROOF and not f.holds]
    compared = [f for f in seen.findings if f.step != PROOF]
    if set(entry.steps) == {OUTSIDE} and _lacks_a_name(observations, topology, jax):
        unproven, compared = [], [f for f in compared if f.step == OUTSIDE]
    if unproven or not entry.explains(compared, observations, fault):
        differs = mismatch(entry, compared, observations, fault)
        why = f"differs from what {entry.where} describes: {differs}"
        if not differs:
            why = f"what ran is not proved, which {entry.where} does not excuse"
        return Judgement(seen.verdict, f"{seen.reason} — {why}", seen.findings)
    return Judgement(Verdict.KNOWN_DEVIATION, seen.reason, seen.findings, entry)


def _lacks_a_name(observations: Sequence[Observation], topology: Topology, jax: str) -> bool:
    """Return whether each process ended before any map and any step, at a name that JAX lacks.

    Then there is no map to prove and no step to compare: an entry says which name.
    """
    return len(observations) == topology.processes and all(
        not one.witness
        and [step.name for step in one.steps] == [OUTSIDE]
        and one.steps[0].raised is not None
        and _ABSENT.match(one.steps[0].raised.message) is not None
        and all(proof.holds for proof in _prove(one, topology, jax))
        for one in observations
    )


PROOF = "proof"


def _compare(
    clause: Clause,
    implementation: str,
    topology: Topology,
    jax: str,
    observations: Sequence[Observation],
    fault: Fault | None,
    warned: Sequence[Deviation],
) -> Judgement:
    expectation = clause.expect[implementation]
    if fault is not None:
        return _of_fault(clause, implementation, topology, fault)
    compiled = [o for o in observations if o.compiled is not None]
    uncompared = compile_only.impossible(compiled) if compiled else None
    if uncompared is not None:
        return Judgement(Verdict.NOT_APPLICABLE, uncompared)
    if compiled:
        expectation = compile_only.labelled(expectation)
    proofs = list(_proofs(clause, implementation, topology, jax, observations))
    compared = _compared(expectation, topology, observations)
    compared += check_defaults(expectation, jax, observations, warned)
    findings = (*proofs, *compared)
    failed = [f for f in findings if not f.holds]
    if not failed:
        saw = shortened(compile_only.first_of(compared, clause.expect[implementation]).saw)
        return Judgement(Verdict.CONFORMS, _prefixed(saw, compiled), findings)
    return Judgement(
        Verdict.DEVIATES, _prefixed(_first_failure(failed, observations), compiled), findings
    )


def _proofs(
    clause: Clause,
    implementation: str,
    topology: Topology,
    jax: str,
    observations: Sequence[Observation],
) -> Iterator[Finding]:
    """Yield whether the observations prove what ran: which JAX, implementation and processes."""
    for one in observations:
        yield from _prove(one, topology, jax)
    for one in observations:
        if one.compiled is not None:
            yield from compile_only.proofs(one, topology, PROOF)
    if not clause.selects and implementation != names.JAX:
        yield from (_witnessed(one, implementation) for one in observations)
    came = sorted(one.process for one in observations)
    if came != list(range(topology.processes)):
        saw = f"{len(came)} observations, from {', '.join(map(str, came)) or 'none'}"
        wanted = f"one from each of {topology.processes}"
        yield Finding(PROOF, 0, False, wanted, saw, Code.PROOF)


def _compared(
    expectation: Expectation, topology: Topology, observations: Sequence[Observation]
) -> list[Finding]:
    """Return the expectation's findings, and one for each step that it left unchecked."""
    found = expectation.check(topology, observations)
    if not found:
        wanted, saw = "something to be compared", "nothing was compared"
        found = [Finding("the case", 0, False, wanted, saw, Code.ENDING)]
    found = [one for one in found if one.step != OUTSIDE]
    steps = [(one.process, step) for one in observations for step in one.steps]
    inside = "a probe that raises in its steps alone"
    found += [
        Finding(OUTSIDE, process, False, inside, str(step), Code.ERROR)
        for process, step in steps
        if step.name == OUTSIDE
    ]
    checked = {(one.process, one.step) for one in found}
    wanted = "every step to be compared"
    found += [
        Finding(step.name, process, False, wanted, f"unchecked: {step}", Code.ENDING)
        for process, step in steps
        if (process, step.name) not in checked
    ]
    return found


def _first_failure(failed: Sequence[Finding], observations: Sequence[Observation]) -> str:
    """Return the reason of a deviating cell: what happened, rather than a missing proof."""
    first = next((one for one in failed if one.step != PROOF), failed[0])
    reason = f"{first.step}: {shortened(first.saw)}"
    step = steps_of(observations).get((first.process, first.step))
    if step is not None and step.raised and step.raised.message.startswith(_OUT_OF_MEMORY):
        return f"out of the device's memory: {reason}"
    return reason


def _prefixed(reason: str, compiled: Sequence[Observation]) -> str:
    """Return the reason, prefixed by what was only compiled."""
    return f"{compile_only.describe_compilation(compiled[0])}: {reason}" if compiled else reason


def _of_fault(clause: Clause, implementation: str, topology: Topology, fault: Fault) -> Judgement:
    """Judge a case that did not finish: proved by the maps that it had made, if it needs a
    proof.
    """
    expectation = clause.expect[implementation]
    unasked = clause.selects or implementation == names.JAX
    if not unasked and (not fault.mapped or set(fault.mapped) - set(WRAPPERS[implementation])):
        made = ", ".join(fault.mapped) or "no map"
        finding = Finding(
            PROOF, 0, False, f"a map of {implementation}", f"it made {made}", Code.PROOF
        )
        excusable = isinstance(expectation, Hangs)
        reason = f"unproven, it made {made}: {fault.detail}" if excusable else fault.detail
        return Judgement(fault.kind, reason, (finding,))
    if isinstance(expectation, Hangs) and fault.kind == Verdict.HUNG:
        elsewhere = expectation.elsewhere(topology, fault)
        if not elsewhere:
            return Judgement(Verdict.CONFORMS, f"as expected: {fault.detail}")
        return Judgement(fault.kind, f"{elsewhere}: {fault.detail}")
    return Judgement(fault.kind, fault.detail)


def _prove(seen: Observation, topology: Topology, jax: str) -> list[Finding]:
    def finding(expected: str, saw: str) -> Finding:
        return Finding(PROOF, seen.process, expected == saw, expected, saw, Code.PROOF)

    return [
        finding(f"jax {jax}", f"jax {seen.jax}"),
        finding(f"{topology.processes} processes", f"{seen.processes} processes"),
    ]


def _witnessed(seen: Observation, implementation: str) -> Finding:
    proven = bool(seen.witness) and all(_is_witness(w, implementation) for w in seen.witness)
    seen_calls = (
        f"{w.wrapper} -> {', '.join(w.outputs) or ('raised' if w.raised else 'no result')}, "
        f"traced {', '.join(w.traced) or 'no map'}"
        for w in seen.witness
    )
    saw = "; ".join(dict.fromkeys(seen_calls))
    expected = f"proof that {implementation} ran ({' or '.join(WRAPPERS[implementation])})"
    return Finding(PROOF, seen.process, proven, expected, saw or "none", Code.PROOF)


def _is_witness(witness: Witness, implementation: str) -> bool:
    """Return whether a call was the implementation's: by its wrapper, trace and outputs.

    A call that raised may have done so before tracing; one that returned has traced. A shard_map
    that legacy pmap traces may be its body's own: then its outputs must prove it.
    """
    if witness.wrapper not in WRAPPERS[implementation]:
        return False
    legacy = implementation == names.LEGACY_PMAP
    # A map called inside another transformation returns tracers.
    seen = [kind for kind in witness.outputs if kind != TRACED]
    if not all((kind == PMAP_SHARDING) == legacy and kind.endswith(SHARDING) for kind in seen):
        return False
    traced = SHARD_MAP_PRIMITIVE in witness.traced
    if legacy:
        return not traced or (bool(seen) and not witness.raised)
    return traced or witness.raised
