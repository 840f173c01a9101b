"""The entry point for pytest of an environment that has this project installed.

It adds one option. Without it nothing is imported, registered or collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PLUGIN = "harness.plugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that loads the plugin."""
    group = parser.getgroup("pmap-conformance", "conformance of jax.pmap and shard_map")
    group.addoption(
        "--pmap-conformance",
        action="store_true",
        help="load the plugin that runs conformance cells, with its options; collect them with "
        "`--pyargs harness.suite`",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Load the plugin where it is asked for; pytest then parses the plugin's options too."""
    if early_config.known_args_namespace.pmap_conformance:
        early_config.pluginmanager.import_plugin(PLUGIN)
