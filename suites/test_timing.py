"""The time lane: durations measured inside the workers, as pytest-benchmark's statistics.

Run with `-m benchmark`, without `-n`.
"""

from __future__ import annotations

from harness.suite.test_sections import test_timing as test_timing
