"""Keeps the cells of one cluster on one xdist worker, under a bare `-n`.

`--dist loadgroup` says it does that, but needs a mark on every item before xdist looks at it;
grouping by what the node id says needs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdist.scheduler import LoadScopeScheduling

from harness.running.cells import chunks_for, group


class ClusterScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """LoadScopeScheduling whose scope is a cluster's share of the cells (`cells.group`)."""

    _chunks: int | None = None
    runs: Mapping[str, Sequence[str]] = {}

    def _split_scope(self, nodeid: str) -> str:
        if self._chunks is None:
            collected: list[Any] = self.collection or []
            self._chunks = chunks_for(collected, len(self.nodes))
        return group(nodeid, self._chunks, self.runs)
