"""Where the documents are silent, legacy pmap is the oracle."""

from __future__ import annotations

from harness.suite.test_sections import test_silences as test_silences
