"""When two results of a library function count as different."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fabricated import Cell
from fabricated import check as judge
from records import leaf, returned

from conformance.model.verdicts import Verdict
from conformance.sections.silences.library_cases import FAMILIES, STEP
from conformance.sections.silences.library_values import HUNDREDTH, ROUNDING, VALUES, apart
from conformance.spec.names import NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Topology

ONE = np.array([1.0, 200.0], np.float32)


@pytest.mark.parametrize(
    ("ours", "different"),
    [
        (ONE, False),
        (ONE * np.float32(1 + ROUNDING / 4), False),
        (ONE * np.float32(1 + ROUNDING * 4), True),
        (ONE[::-1], True),
        (ONE.astype(np.float64), True),
        (ONE[:1], True),
        (np.array([1.0, np.nan], np.float32), True),
        (np.array([1.0, np.inf], np.float32), True),
    ],
)
def test_numbers_differ_by_more_than_rounding(ours: Any, different: bool) -> None:
    assert apart(ours, ONE, rounded=False) is different


def test_whole_numbers_and_flags_are_compared_exactly() -> None:
    assert apart(np.array([1, 3]), np.array([1, 2]), rounded=True)
    assert apart(np.array([True]), np.array([False]), rounded=True)
    assert not apart({"a": np.array([1, 2])}, {"a": np.array([1, 2])}, rounded=False)


def test_where_both_are_not_finite_the_rest_is_compared() -> None:
    nan = np.array([np.nan, 2.0], np.float32)
    assert not apart(nan, nan.copy(), rounded=False)
    assert apart(nan, np.array([np.nan, 3.0], np.float32), rounded=False)


def test_what_rounds_to_hundredths_may_round_otherwise() -> None:
    ours, theirs = np.array([0.5], np.float32), np.array([0.51], np.float32)
    assert not apart(ours, theirs, rounded=True)
    assert apart(ours, theirs, rounded=False)
    assert apart(ours, theirs + np.float32(3 * HUNDREDTH), rounded=True)


def seen(refused: int, differs: list[str]) -> dict[str, Any]:
    """The step of a cell: functions refused, the others compared, and those that differ."""
    compared = len(FAMILIES["lax"].cases()) - refused
    note = {"refused": refused, "compared": compared, "differs": differs}
    return returned(leaf(np.array(True)), name=STEP) | {"extra": {VALUES: note}}


@pytest.mark.parametrize(
    ("implementation", "check", "refused", "differs", "verdict"),
    [
        (NEW_PMAP, "checked", 0, [], Verdict.CONFORMS),
        (NEW_PMAP, "checked", 1, [], None),
        (NEW_PMAP, "checked", 0, ["sort"], None),
        (SHARD_MAP, "checked", 1, [], Verdict.CONFORMS),
        (SHARD_MAP, "checked", 1, ["sort"], None),
        (SHARD_MAP, "unchecked", 0, [], Verdict.CONFORMS),
        (SHARD_MAP, "unchecked", 1, [], None),
    ],
)
def test_only_the_types_of_shard_map_refuse_a_function(
    implementation: str, check: str, refused: int, differs: list[str], verdict: Verdict | None
) -> None:
    id = f"silences.library-values.lax.{check}"
    judge(Cell(id, implementation, Topology(1, 8), [seen(refused, differs)], verdict))
