"""What the maps take: shardings, views, and data that processes stitch together."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("inputs")
def test_inputs(cell: Cell) -> None:
    cell.check()
