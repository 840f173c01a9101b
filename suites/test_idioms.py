"""Ways in which published code uses pmap, in every implementation."""

from __future__ import annotations

from harness.suite.test_sections import test_idioms as test_idioms
