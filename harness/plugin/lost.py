"""Cells that a run on test processes (`-n`) lost with them: on record as not run.

A cell whose test process died is one, unless another runs it. So are those left when test processes
died so often that xdist starts no more: a run that says nothing of them would look whole.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from conformance.model.records import Cell
from harness.plugin import message
from harness.plugin.session import Session
from harness.running import cells
from harness.running.aside import Outcome
from harness.running.runner import not_run

DIED = "the pytest process that ran this cell died"
NEVER_BEGUN = (
    "pytest processes died so often that none was left to run this cell: see why they died, then "
    "run what is left with --resume"
)


class Lost:
    """What became of each item that was collected, as far as the controller hears of it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._collected: tuple[str, ...] = ()
        self._reported: set[str] = set()
        self._judged: set[str] = set()

    def collected(self, nodeids: Any) -> None:
        """All test processes collect the same; the first is believed."""
        self._collected = self._collected or tuple(nodeids)

    def reported(self, report: Any) -> None:
        """An item has come to an end, whichever."""
        self._reported.add(report.nodeid)
        if getattr(report, "conformance", None) is not None:
            self._judged.add(report.nodeid)

    def judged(self, nodeid: str) -> bool:
        """Whether its cell has a verdict: it is not lost with its test process."""
        return nodeid in self._judged

    def died(self, nodeid: str) -> None:
        """A test process died while it ran this item."""
        record = None if self.judged(nodeid) else self.record(nodeid, DIED)
        if record is not None:
            self._session.died[nodeid] = Outcome(record, None)

    def unreported(self) -> list[str]:
        """What was collected, and never came to an end."""
        return [nodeid for nodeid in self._collected if nodeid not in self._reported]

    def take_never_begun(self) -> int:
        """Count and record what was collected and never reported; how many of it are red."""
        red = 0
        for nodeid in self.unreported():
            record = self.record(nodeid, NEVER_BEGUN)
            if record is not None:
                self._session.take(nodeid, Outcome(record, None))
                red += not self._session.excuses(record)
        return red

    def record(self, nodeid: str, reason: str) -> Cell | None:
        """The record of a cell that was not run, and why; None where the test is no cell."""
        id = cells.parse_nodeid(nodeid)
        if id is None:
            return None
        session = self._session
        clause = session.catalogue.clauses[id.clause]
        return replace(
            not_run(id, reason),
            reproduce=message.reproduce(nodeid, id, clause, session.options.platform),
        )
