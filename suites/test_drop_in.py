"""The stand-ins for the two functions that stack and shard."""

from __future__ import annotations

from harness.suite.test_sections import test_drop_in as test_drop_in
