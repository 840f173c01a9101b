"""The tutorial on sharded computation: jit, constraints and shard_map side by side."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("sharded_computation")
def test_sharded_computation(cell: Cell) -> None:
    cell.check()
