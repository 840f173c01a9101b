"""What the maps take: shardings, views, and data that processes stitch together."""

from __future__ import annotations

from harness.suite.test_sections import test_inputs as test_inputs
