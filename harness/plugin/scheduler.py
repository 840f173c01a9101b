"""Keep the cells of one cluster on one xdist worker, with a plain `-n`.

`--dist loadgroup` needs a mark on every item before xdist looks at it; grouping by node id needs
nothing. A test process may die at any moment, during start-up as well: its items then run in
another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdist.scheduler import LoadScopeScheduling

from harness.running.cells import CellId, chunks_for, group


class ClusterScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """LoadScopeScheduling whose scope is a cluster's share of the cells (`cells.group`)."""

    _chunks: int | None = None
    _crashed: frozenset[str] = frozenset()  # items whose test process died
    runs: Mapping[str, Sequence[str]] = {}
    waits: Callable[[CellId], bool] = staticmethod(lambda _: False)
    judged: Callable[[str], bool] = staticmethod(lambda _: False)

    def _split_scope(self, nodeid: str) -> str:
        if self._chunks is None:
            collected: list[Any] = self.collection or []
            self._chunks = chunks_for(collected, len(self.nodes))
        return group(nodeid, self._chunks, self.runs, self.waits)

    def remove_node(self, node: Any) -> str | None:
        """Return the item that a test process died of; it runs once more unless it has a verdict.

        It does not run a third time.
        """
        if self.collection is None:
            # It would count as one of those that are waited for, and its successor would not.
            self.registered_collections.pop(node, None)
        units = self.assigned_work.get(node, {}).values()
        pending: list[tuple[dict[str, bool], str]] = [
            (unit, item) for unit in units for item, done in unit.items() if not done
        ]
        if not pending:
            super().remove_node(node)
            return None
        unit, item = pending[0]
        unit[item] = item in self._crashed or self.judged(item)
        self._crashed |= {item}
        # What is done would be handed out again, and who gets nothing to run never asks for more.
        work = self.assigned_work[node]
        for scope in [scope for scope, unit in work.items() if all(unit.values())]:
            del work[scope]
        super().remove_node(node)
        return item

    def _reschedule(self, node: Any) -> None:
        # A successor that has not collected yet is given its share when it has.
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        # A test process runs an item once it knows the next one, and reports nothing before.
        while self.workqueue and not node.shutting_down:
            if self._pending_of(self.assigned_work[node]) > 1:
                return
            super()._reschedule(node)
