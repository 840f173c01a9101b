"""What the maps return: one array or a stack, its first row, and the way to the host."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("outputs")
def test_outputs(cell: Cell) -> None:
    cell.check()
