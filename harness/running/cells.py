"""Which cells a run has: clause x implementation x target x topology.

A cell's id is its pytest parameter, so it is a stable string of names that the user gave;
collection is the same in every xdist worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.catalogue.loading import Catalogue
from conformance.spec.names import COLUMNS

_ID = re.compile(rf"\[(.+?)-({'|'.join(COLUMNS)})-(\d+x\d+)-(.+)\]$")


WAITING = "cells that mostly wait"


@dataclass(frozen=True, slots=True)
class CellId:
    """One cell; `target` is the target's spec, `topology` its text."""

    clause: str
    implementation: str
    topology: str
    target: str

    def __str__(self) -> str:
        return f"{self.clause}-{self.implementation}-{self.topology}-{self.target}"


def parse_nodeid(nodeid: str) -> CellId | None:
    """Return the cell that a pytest node id names; None if the test is not a cell."""
    match = _ID.search(nodeid)
    return CellId(match[1], match[2], match[3], match[4]) if match else None


def select(
    catalogue: Catalogue,
    section: str,
    implementations: Sequence[str],
    targets: Sequence[str],
    topologies: Sequence[str] = (),
) -> list[CellId]:
    """Return the cells of a section, on `topologies` or, if empty, on each clause's own.

    Sorted by target and topology first, because a cluster serves one such pair at a time.
    """
    chosen = [
        CellId(one.id, implementation, topology, target)
        for target in targets
        for one in catalogue.clauses.values()
        if one.section == section
        for topology in (topologies or one.topologies)
        for implementation in implementations
        if implementation in one.expect
    ]
    order = {target: at for at, target in enumerate(targets)}
    return sorted(chosen, key=lambda c: (order[c.target], c.topology))


def group(
    nodeid: str,
    chunks: int = 1,
    runs: Mapping[str, Sequence[str]] | None = None,
    waits: Callable[[CellId], bool] = lambda _: False,
    looks_at_compiled: Callable[[CellId], bool] = lambda _: False,
) -> str:
    """Return the xdist group of a test: its target, topology and how its cluster compiles, else its
    module.

    A large group is split into `chunks` by clause, so that several workers can share it; clauses
    that judge the same run (`runs`, by clause) stay together. Cells that mostly wait are one group.
    """
    cell = parse_nodeid(nodeid)
    if cell is None:
        return nodeid.split("::", 1)[0]
    if waits(cell):
        return WAITING
    first = (runs or {}).get(cell.clause, (cell.clause,))[0]
    chunk = sum(first.encode()) % chunks
    compiled = " as by default" if looks_at_compiled(cell) else ""
    return f"{cell.target} {cell.topology}{compiled} {chunk}"


def cluster_of(name: str) -> str:
    """Return the cluster of a group of cells, by its name; the name of any other group."""
    return name.rsplit(" ", 1)[0]


def chunks_for(nodeids: Iterable[str], workers: int, least: int = 24) -> int:
    """Return into how many chunks to split groups: none smaller than about `least` cells.

    So many that the last chunk is short: the other test processes have nothing to run beside it.
    """
    sizes: dict[str, int] = {}
    for nodeid in nodeids:
        if parse_nodeid(nodeid) is not None:
            name = group(nodeid)
            sizes[name] = sizes.get(name, 0) + 1
    return max(1, min(16 * workers, max(sizes.values(), default=0) // least))
