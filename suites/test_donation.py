"""What a donated argument costs: whether it is copied, deleted and reused, and at which peak."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("donation")
def test_donation(cell: Cell) -> None:
    cell.check()
