"""What the maps return: one array or a stack, its first row, and the way to the host."""

from __future__ import annotations

from harness.suite.test_sections import test_outputs as test_outputs
