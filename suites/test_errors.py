"""The documented errors, their causes and their fixes."""

from __future__ import annotations

from harness.suite.test_sections import test_errors as test_errors
