"""`--long`: the self-tests that take long run only where they are asked for."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="also run the self-tests marked `long`; a file that is named runs whole",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long ones, but for those of files that the command line names."""
    if config.getoption("long"):
        return
    start = config.invocation_params.dir
    named = {(start / argument.split("::", 1)[0]).resolve() for argument in config.args}
    left_out = [
        item for item in items if item.get_closest_marker("long") and item.path not in named
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
