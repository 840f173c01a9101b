"""The multi-controller tutorial: its programs, run by several processes as they are written."""

from __future__ import annotations

from harness.suite.test_sections import test_multi_controller as test_multi_controller
