"""What a mapped body sees, and what becomes of functions that depend on its rank."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("rank")
def test_rank(cell: Cell) -> None:
    cell.check()
