"""The stand-ins for the two functions that stack and shard."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("drop_in")
def test_drop_in(cell: Cell) -> None:
    cell.check()
