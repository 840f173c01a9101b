"""A test per section: each runs the cells of its section, or measures those of the time lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.plugin.session import Cell, Timed
from harness.running.lane import CLOCK


def _section(name: str) -> Callable[[Cell], None]:
    @pytest.mark.section(name)
    def test(cell: Cell) -> None:
        cell.check()

    return test


test_donation = _section("donation")
test_drop_in = _section("drop_in")
test_errors = _section("errors")
test_idioms = _section("idioms")
test_indexing = _section("indexing")
test_inputs = _section("inputs")
test_multi_controller = _section("multi_controller")
test_outputs = _section("outputs")
test_rank = _section("rank")
test_rewriting = _section("rewriting")
test_sharded_computation = _section("sharded_computation")
test_silences = _section("silences")
test_switches = _section("switches")


@pytest.mark.benchmark(timer=CLOCK)
def test_timing(timed: Timed, benchmark: Any) -> None:
    """Measure a contender of the time lane; pytest-benchmark reports its seconds."""
    timed.measure(benchmark)
