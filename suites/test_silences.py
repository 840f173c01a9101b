"""Where the documents are silent, legacy pmap is the oracle."""

from __future__ import annotations

import pytest

from harness.plugin.session import Cell


@pytest.mark.section("silences")
def test_silences(cell: Cell) -> None:
    cell.check()
