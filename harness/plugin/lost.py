"""Cells that were lost with a test process of `-n`: recorded as not run.

A cell is lost if its test process died and no other runs it, or if test processes died so often
that xdist stops starting them. Without these records an incomplete run would look complete.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from conformance.model.records import Cell
from harness.plugin import message
from harness.plugin.session import Session
from harness.running import cells
from harness.running.background import Outcome
from harness.running.runner import not_run

DIED = "the pytest process that ran this cell died"
NEVER_BEGUN = (
    "pytest processes died so often that none was left to run this cell: see why they died, then "
    "run what is left with --resume"
)


class Lost:
    """What became of each collected item, as far as the controller knows."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._collected: tuple[str, ...] = ()
        self._reported: set[str] = set()
        self._judged: set[str] = set()

    def collected(self, nodeids: Any) -> None:
        """Store the collection; all test processes collect the same, so the first one counts."""
        self._collected = self._collected or tuple(nodeids)

    def reported(self, report: Any) -> None:
        """Note that an item has finished, with any outcome."""
        self._reported.add(report.nodeid)
        if getattr(report, "conformance", None) is not None:
            self._judged.add(report.nodeid)

    def judged(self, nodeid: str) -> bool:
        """Return whether an item's cell has a verdict, so that it survives its test process."""
        return nodeid in self._judged

    def died(self, nodeid: str) -> None:
        """Note that a test process died while it ran this item."""
        record = None if self.judged(nodeid) else self.record(nodeid, DIED)
        if record is not None:
            self._session.died[nodeid] = Outcome(record, None)

    def unreported(self) -> list[str]:
        """Return the items that were collected and never finished."""
        return [nodeid for nodeid in self._collected if nodeid not in self._reported]

    def take_never_begun(self) -> int:
        """Record and count what was collected and never reported; return how many are red."""
        red = 0
        for nodeid in self.unreported():
            record = self.record(nodeid, NEVER_BEGUN)
            if record is not None:
                self._session.take(nodeid, Outcome(record, None))
                red += not self._session.excuses(record)
        return red

    def record(self, nodeid: str, reason: str) -> Cell | None:
        """Return the record of a cell that was not run, with the reason; None if the test is not a
        cell.
        """
        id = cells.parse_nodeid(nodeid)
        if id is None:
            return None
        session = self._session
        clause = session.catalogue.clauses[id.clause]
        return replace(
            not_run(id, reason),
            reproduce=message.reproduce(nodeid, id, clause, session.options.platform),
        )
