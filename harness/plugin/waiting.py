"""Hooks for cells that mostly wait: started in their turn, reported after all others."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from harness.plugin.session import Session, cell_of


class Waiting:
    """Starts cells that mostly wait in the background; runs their items after the loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._items: list[pytest.Item] = []
        self._reporting = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Return true if the item needs no run now, because its cell runs in the background."""
        cell = cell_of(item)
        if self._reporting or cell is None or not self._session.start_in_background(cell):
            return None
        self._items.append(item)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Report the cells that run in the background, each when its run has ended."""
        result = yield
        self._reporting = True
        for item, following in zip(self._items, [*self._items[1:], None], strict=False):
            _announce(item)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return result


def _announce(item: pytest.Item) -> None:
    """Tell xdist which item the next reports belong to, which it verifies."""
    # In a test process xdist's module is a copy without a name, so its class is another one.
    for plugin in item.config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.item_index = item.session.items.index(item)
