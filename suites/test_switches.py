"""The switches between the two pmaps, what became of them, and the names that the guide uses."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("switches")
def test_switches(cell: Cell) -> None:
    cell.check()
