"""What an access to a map's output costs: what is moved, where the result lies."""

from __future__ import annotations

from harness.suite.test_sections import test_indexing as test_indexing
