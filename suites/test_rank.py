"""What a mapped body sees, and what becomes of functions that depend on its rank."""

from __future__ import annotations

from harness.suite.test_sections import test_rank as test_rank
