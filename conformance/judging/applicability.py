"""Why a cell is not run: the one place that decides it, of a clause and of what a target has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.judging import compile_only
from conformance.judging.judge import Judgement
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Clause
from conformance.spec.expectation import NotApplicable
from conformance.spec.topology import Topology


@dataclass(frozen=True, slots=True)
class Skip:
    """The judgement of a cell that is not run; `lacks` names what could be installed for it."""

    judgement: Judgement
    lacks: tuple[str, ...] = ()


def skip(
    clause: Clause, implementation: str, topology: Topology, facts: Mapping[str, Any]
) -> Skip | None:
    """Return why a cell is not run on a target with these facts (`worker.facts`); None if it is."""
    found = skipped_everywhere(clause, implementation, topology, facts["platform"])
    if found is None and facts["platform"] == names.TPU_COMPILE:
        why = compile_only.excuse(clause.expect[implementation])
        found = None if why is None else Judgement(Verdict.NOT_APPLICABLE, why)
    if found is None and not clause.selects:
        found = _missing_implementation(implementation, facts)
    return _lacking(clause, facts) if found is None else Skip(found)


def skipped_everywhere(
    clause: Clause, implementation: str, topology: Topology, platform: str = names.CPU
) -> Judgement | None:
    """Return why a clause does not apply to a cell, whatever the JAX; None if it does."""
    expectation = clause.expect[implementation]
    if isinstance(expectation, NotApplicable):
        return Judgement(Verdict.NOT_APPLICABLE, expectation.reason)
    unmet = clause.needs.unmet(topology) or clause.elsewhere(topology)
    if unmet is None and clause.on_cpu and platform not in (names.CPU, names.TPU_COMPILE):
        unmet = f"its processes compute on CPU, which says nothing about {platform}"
    return Judgement(Verdict.NOT_APPLICABLE, unmet) if unmet is not None else None


def _missing_implementation(implementation: str, facts: Mapping[str, Any]) -> Judgement | None:
    if implementation in (names.JAX, *facts["implementations"]):
        return None
    reason = f"jax {facts['jax']} has no {implementation}"
    if implementation == names.LEGACY_PMAP:
        return Judgement(Verdict.REMOVED, reason)
    kinds = ", ".join(facts["unknown"]) or "nothing"
    return Judgement(
        Verdict.DEVIATES,
        f"{reason} that this program knows by sight; it found {kinds}: where it has moved, say "
        "so in probing.implementations",
    )


def _lacking(clause: Clause, facts: Mapping[str, Any]) -> Skip | None:
    """Return which packages or programs are missing, and how to get them; None if none is."""
    if missing := tuple(name for name in clause.requires if name not in facts["packages"]):
        extras = " ".join(f"--extra {name}" for name in missing)
        return _without(missing, f"is not installed in this target: {extras}")
    absent = tuple(name for name in clause.programs if name not in facts["programs"])
    return _without(absent, "is not on this machine's PATH") if absent else None


def _without(lacks: tuple[str, ...], how: str) -> Skip:
    return Skip(Judgement(Verdict.NOT_RUN, f"{', '.join(lacks)} {how}"), lacks)
