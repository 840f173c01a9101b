"""What a donated argument costs: whether it is copied, deleted and reused, and at which peak."""

from __future__ import annotations

from harness.suite.test_sections import test_donation as test_donation
