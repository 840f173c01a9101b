"""The switches between the two pmaps, what became of them, and the names that the guide uses."""

from __future__ import annotations

from harness.suite.test_sections import test_switches as test_switches
