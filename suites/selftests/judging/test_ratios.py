"""Statements about durations: which are allowed."""

from __future__ import annotations

import pytest

from conformance.judging.ratios import Ratio, Spread, ratio, seconds, slowest


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("slower", Ratio("legacy", 28.0, 25.0, 31.0, 6, 20), "28 times legacy (25 to 31 times"),
        ("little slower", Ratio("legacy", 1.5, 1.2, 1.8, 6, 20), "1.5 times legacy (1.2 to 1.8"),
        ("faster", Ratio("legacy", 0.5, 0.4, 0.8, 6, 20), "2 times faster than legacy (0.4"),
        ("hidden", Ratio("legacy", 1.4, 0.9, 2.0, 6, 20), "no difference from legacy beyond"),
        ("exactly one", Ratio("legacy", 1.0, 1.0, 1.0, 6, 20), "no difference from legacy"),
    ],
)
def test_a_ratio_says_which_is_slower_or_that_the_spread_hides_it(
    name: str, given: Ratio, said: str
) -> None:
    assert str(given).startswith(said), name
    assert "6 blocks of 20 rounds" in str(given)


def test_a_ratio_is_taken_block_by_block() -> None:
    # The machine is ten times slower in the second block: the ratio does not see it.
    found = ratio([[2.0, 2.0, 2.0], [20.0, 20.0, 20.0]], [[1.0, 1.0, 9.0], [10.0, 10.0, 10.0]], "b")
    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    assert (found.blocks, found.rounds) == (2, 3)


def test_blocks_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="2 blocks cannot be compared with 1"):
        ratio([[1.0], [1.0]], [[1.0]], "b")
    with pytest.raises(ValueError, match="0 blocks"):
        ratio([], [], "b")


def test_the_slowest_process_counts_round_by_round() -> None:
    assert slowest([[1.0, 5.0], [3.0, 2.0]]) == [3.0, 5.0]
    with pytest.raises(ValueError, match="longer"):
        slowest([[1.0], [1.0, 2.0]])


def test_a_spread_is_median_and_quartiles() -> None:
    assert Spread.from_values([1.0, 2.0, 3.0, 4.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.from_values([7.0]) == Spread(7.0, 7.0, 7.0)
    assert seconds([[1.0], [3.0], [2.0]])["median"] == 2.0
    with pytest.raises(ValueError, match="nothing was measured"):
        Spread.from_values([])
