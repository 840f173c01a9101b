"""The documented errors, their causes and their fixes."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("errors")
def test_errors(cell: Cell) -> None:
    cell.check()
