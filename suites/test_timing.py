"""The time lane: durations measured inside the workers, as pytest-benchmark's statistics.

Run with `-m benchmark`, without `-n`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.lane import CLOCK
from harness.session import Timed


@pytest.mark.benchmark(timer=CLOCK)
def test_timing(timed: Timed, benchmark: Any) -> None:
    timed.measure(benchmark)
