"""Several processes that run one JAX program."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("multi_controller")
def test_multi_controller(cell: Cell) -> None:
    cell.check()
