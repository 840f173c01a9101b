"""Ways in which published code uses pmap, in every implementation."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("idioms")
def test_idioms(cell: Cell) -> None:
    cell.check()
