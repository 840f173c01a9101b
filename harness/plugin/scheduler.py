"""Keep the cells of one cluster on one xdist worker, with a plain `-n`.

`--dist loadgroup` needs a mark on every item before xdist looks at it; grouping by node id needs
nothing. Cells that mostly wait are handed out first. A test process keeps its cluster's target and
topology while such cells are left; then it takes those that the fewest others run, so that clusters
of many processes, which often wait, run beside those of one. A test process may die at any moment,
during start-up as well: its items then run in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdist.scheduler import LoadScopeScheduling

from harness.running.cells import WAITING, CellId, chunks_for, cluster_of, group, parse_nodeid
from harness.running.tiers import UNKNOWN_S


class ClusterScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """LoadScopeScheduling whose scope is a cluster's share of the cells (`cells.group`)."""

    _chunks: int | None = None
    _crashed: frozenset[str] = frozenset()  # items whose test process died
    runs: Mapping[str, Sequence[str]] = {}
    waits: Callable[[CellId], bool] = staticmethod(lambda _: False)
    looks_at_compiled: Callable[[CellId], bool] = staticmethod(lambda _: False)
    judged: Callable[[str], bool] = staticmethod(lambda _: False)
    seconds: Callable[[CellId], float] = staticmethod(lambda _: UNKNOWN_S)

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        self._serves: dict[Any, str] = {}  # the cluster that each test process ran last
        self._cost: dict[str, float] = {}  # of a scope, in seconds

    def _split_scope(self, nodeid: str) -> str:
        if self._chunks is None:
            collected: list[Any] = self.collection or []
            self._chunks = chunks_for(collected, len(self.nodes))
        return group(nodeid, self._chunks, self.runs, self.waits, self.looks_at_compiled)

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(self._next_scope(node), last=False)
        super()._assign_work_unit(node)

    def _next_scope(self, node: Any) -> str:
        """Return the scope that a test process runs next, and note its cluster."""
        if WAITING in self.workqueue:
            return WAITING
        left: dict[str, list[str]] = {}
        for scope in self.workqueue:
            left.setdefault(cluster_of(scope), []).append(scope)
        served = Counter(one for who, one in self._serves.items() if who is not node)
        last = self._serves.get(node)
        cluster = min(
            left,
            key=lambda one: (one != last, served[one], -sum(map(self._cost_of, left[one]))),
        )
        self._serves[node] = cluster
        return max(left[cluster], key=self._cost_of)

    def _cost_of(self, scope: str) -> float:
        if scope not in self._cost:
            cells = map(parse_nodeid, self.workqueue[scope])
            self._cost[scope] = sum(
                UNKNOWN_S if one is None else self.seconds(one) for one in cells
            )
        return self._cost[scope]

    def remove_node(self, node: Any) -> str | None:
        """Return the item that a test process died of; it runs once more unless it has a verdict.

        It does not run a third time.
        """
        self._serves.pop(node, None)
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
