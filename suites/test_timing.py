"""The time lane: durations measured inside the workers, as pytest-benchmark's statistics.

Run with `-m benchmark`, without `-n`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.session import Timed
from harness.running.lane import CLOCK


@pytest.mark.benchmark(timer=CLOCK)
def test_timing(timed: Timed, benchmark: Any) -> None:
    timed.measure(benchmark)
