"""pmap rewritten as jit(shard_map): the recipes, their collectives and their gradients."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("rewriting")
def test_rewriting(cell: Cell) -> None:
    cell.check()
