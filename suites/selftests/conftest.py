"""Fixtures of all self-tests, and `--long`, which runs the slow ones.

The self-tests call probes in their own process, so JAX is imported before the catalogue is loaded
(`conformance.catalogue.stand_ins`).
"""

from __future__ import annotations

from collections.abc import Iterator

import jax  # noqa: F401
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


@pytest.fixture(autouse=True, scope="session")
def _no_answers_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reports neither use nor replace what the user's own commands have kept."""
    kept = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reports.analysis.answers.folder", lambda: kept)
        yield
