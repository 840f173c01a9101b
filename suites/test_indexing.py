"""What an access to a map's output costs: what is moved, where the result lies."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("indexing")
def test_indexing(cell: Cell) -> None:
    cell.check()
