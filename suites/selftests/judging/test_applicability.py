"""Why a cell is not run: by its clause, and by what the target has."""

from __future__ import annotations

from typing import Any

import pytest
from fake_pool import FACTS
from judged import clause_of
from records import doubled

from conformance.judging.applicability import skip, skipped_everywhere
from conformance.model.verdicts import Verdict
from conformance.spec.clause import devices
from conformance.spec.expectation import not_applicable, returns
from conformance.spec.names import JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP, TPU_COMPILE
from conformance.spec.topology import Topology

ONE, TWO = Topology(1, 8), Topology(2, 2)
RIGHT = returns(doubled)


@pytest.mark.parametrize(
    ("clause", "topology", "says"),
    [
        (clause_of(RIGHT, topologies=("1x8", "2x2")), ONE, ""),
        (clause_of(RIGHT, topologies=("1x8", "2x2")), TWO, ""),
        (clause_of(not_applicable("no such thing")), ONE, "no such thing"),
        (clause_of(RIGHT, needs=devices(9), topologies=("1x8",)), ONE, "at least 9 devices"),
        (clause_of(RIGHT, topologies=("2x2",)), ONE, "asked of several processes"),
        (clause_of(RIGHT, topologies=("1x8",), left_out="it is local"), TWO, "it is local"),
    ],
    ids=["one", "several", "not applicable", "too few devices", "of several", "of one"],
)
def test_a_clause_says_where_it_does_not_apply(clause: Any, topology: Topology, says: str) -> None:
    found = skipped_everywhere(clause, NEW_PMAP, topology)
    if not says:
        assert found is None
        return
    assert found is not None
    assert found.verdict == Verdict.NOT_APPLICABLE
    assert says in found.reason
    skipped = skip(clause, NEW_PMAP, topology, FACTS)
    assert skipped is not None
    assert (skipped.judgement, skipped.lacks) == (found, ())


def test_processes_on_cpu_say_nothing_of_another_platform() -> None:
    on_cpu = clause_of(RIGHT, topologies=("1x8",), on_cpu=True)
    for platform in ("cpu", TPU_COMPILE):
        assert skipped_everywhere(on_cpu, NEW_PMAP, ONE, platform) is None
    found = skip(on_cpu, NEW_PMAP, ONE, has(platform="cuda"))
    assert found is not None
    assert found.judgement.verdict == Verdict.NOT_APPLICABLE
    assert "says nothing about cuda" in found.judgement.reason
    assert skip(clause_of(RIGHT, topologies=("1x8",)), NEW_PMAP, ONE, has(platform="cuda")) is None


def has(**facts: Any) -> dict[str, Any]:
    return {**FACTS, "unknown": [], **facts}


@pytest.mark.parametrize(
    ("implementation", "other", "facts", "verdict", "lacks"),
    [
        (NEW_PMAP, {}, has(), None, ()),
        (LEGACY_PMAP, {}, has(implementations=[NEW_PMAP]), Verdict.REMOVED, ()),
        (SHARD_MAP, {}, has(implementations=[NEW_PMAP]), Verdict.DEVIATES, ()),
        (JAX, {}, has(implementations=[]), None, ()),
        (LEGACY_PMAP, {"selects": True}, has(implementations=[NEW_PMAP]), None, ()),
        (NEW_PMAP, {"requires": ("flax",)}, has(), Verdict.NOT_RUN, ("flax",)),
        (NEW_PMAP, {"requires": ("flax",)}, has(packages={"flax": "0.12"}), None, ()),
        (NEW_PMAP, {"programs": ("srun",)}, has(), Verdict.NOT_RUN, ("srun",)),
        (NEW_PMAP, {"programs": ("srun",)}, has(programs=["srun"]), None, ()),
        (NEW_PMAP, {}, has(platform=TPU_COMPILE), Verdict.NOT_APPLICABLE, ()),
    ],
    ids=[
        *("nothing", "legacy pmap is gone", "shard_map has moved", "no implementation is meant"),
        *("the clause selects it", "no package", "a package", "no program", "a program"),
        "compiled only",
    ],
)
def test_a_target_may_lack_what_a_cell_needs(
    implementation: str, other: Any, facts: Any, verdict: Verdict | None, lacks: tuple[str, ...]
) -> None:
    clause = clause_of(dict.fromkeys([implementation], RIGHT), topologies=("1x8",), **other)
    found = skip(clause, implementation, ONE, facts)
    if verdict is None:
        assert found is None
    else:
        assert found is not None
        assert (found.judgement.verdict, found.lacks) == (verdict, lacks)
