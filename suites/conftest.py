"""The suites are the conformance run; the self-tests are collected where their folder is named."""

from __future__ import annotations

from pathlib import Path

import pytest

SELFTESTS = Path(__file__).with_name("selftests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is in the self-tests' folder and is not named on the command line."""
    if not collection_path.is_relative_to(SELFTESTS):
        return None
    start = config.invocation_params.dir
    paths = [(start / one.split("::", 1)[0]).resolve() for one in config.args]
    named = [path for path in paths if path.is_relative_to(SELFTESTS)]
    on_the_way = any(path.is_relative_to(collection_path) for path in named)
    within = any(collection_path.is_relative_to(path) for path in named)
    return None if on_the_way or within else True
