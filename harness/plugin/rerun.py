"""Run red cells again: alone, on fresh clusters, after all other cells.

Red again is red. If the second run passes, the cell is flaky: both runs are recorded, and it does
not count as green.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.model.records import Again, Cell, Timing
from conformance.model.verdicts import Verdict
from harness.clusters.launchers import TargetDown
from harness.plugin import message
from harness.plugin.lost import Lost
from harness.plugin.session import GREEN, RED, Session
from harness.running import cells
from harness.running.admission import NoRoom
from harness.running.background import Outcome
from harness.running.cells import CellId
from harness.running.runner import Runner, not_run

AGAIN = "rerun"  # outcome of the report of a cell whose verdict is not known yet
MOST = 100  # cells: where more are red, it is no accident


class Rerun:
    """Holds red cells back until all others are done; runs in the controller, as all reporting
    does.
    """

    def __init__(self, session: Session, config: pytest.Config, lost: Lost) -> None:
        self._session = session
        self._config = config
        self._lost = lost
        self._held: dict[str, Any] = {}  # the report of each, by node id
        self.left_out = 0  # red cells that were not run again, as too many are

    def hold(self, report: Any) -> None:
        """Keep a red cell's report until its second run replaces it."""
        self._held[report.nodeid] = report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Run the held cells again once the loop has ended, in whichever processes it ran."""
        result = yield
        lost = [id for id in self._lost.unreported() if self._waits(id)]
        if not self._held and not lost:
            return result
        self._session.release()  # nothing else may run beside them
        runner = self._session.make_runner(alone=True)
        try:
            for nodeid in list(self._held)[:MOST]:
                self._again(nodeid, runner)
            for nodeid in lost:
                self._lost.died(nodeid)
                self._report(nodeid, self._run(nodeid, runner))
        finally:
            runner.pool.close()
            self._session.spent.append(runner.pool.spent)
        self.left_out = len(self._held)
        self.give_up()
        return result

    def give_up(self) -> None:
        """Report the cells that are still held as red, by their only run."""
        for nodeid in list(self._held):
            self._report(nodeid, Outcome.parse(self._held.pop(nodeid).conformance))

    def _again(self, nodeid: str, runner: Runner) -> None:
        first = Outcome.parse(self._held[nodeid].conformance)
        self._session.progress(f"running again, alone: {nodeid}")
        second = self._run(nodeid, runner).record
        del self._held[nodeid]
        assert isinstance(first.record, Cell)
        assert isinstance(second, Cell)
        self._report(nodeid, Outcome(compared(first.record, second), first.facts))

    def _run(self, nodeid: str, runner: Runner) -> Outcome:
        id = self._cell(nodeid)
        try:
            record = runner.run(id)
        except (NoRoom, TargetDown) as error:
            record = not_run(id, str(error))
        session = self._session
        clause = session.catalogue.clauses[id.clause]
        reproduce = message.reproduce(nodeid, id, clause, session.options.platform)
        return Outcome(replace(record, reproduce=reproduce), runner.facts.get(id.target))

    def _report(self, nodeid: str, outcome: Outcome) -> None:
        """Log the cell's final report."""
        record, id = outcome.record, self._cell(nodeid)
        assert isinstance(record, Cell)
        text = self._session.failure(id, record, outcome.facts)
        report = pytest.TestReport(
            nodeid,
            (nodeid.split("::", 1)[0], None, nodeid.split("::", 1)[-1]),
            {},
            outcome_of(record.verdict),  # type: ignore[arg-type]
            text if record.verdict not in GREEN else None,
            "call",
        )
        report.conformance = outcome.dump()  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)

    def _waits(self, nodeid: str) -> bool:
        cell = cells.parse_nodeid(nodeid)
        return cell is not None and self._session.waits(cell)

    @staticmethod
    def _cell(nodeid: str) -> CellId:
        found = cells.parse_nodeid(nodeid)
        assert found is not None
        return found


def compared(first: Cell, second: Cell) -> Cell:
    """Return a red cell's record after its second run: flaky if that one passed."""
    if second.verdict not in GREEN:
        return first
    verdicts = f"{first.verdict} at first, {second.verdict} when run again alone"
    return replace(
        first,
        verdict=Verdict.FLAKY,
        reason=f"{verdicts}; {first.reason}",
        deviation=None,
        again=Again(
            second.verdict, second.reason, second.findings, second.observations, second.fault
        ),
    )


def outcome_of(verdict: str) -> str:
    """Return pytest's outcome for a verdict of a cell that was run."""
    if verdict == Verdict.FLAKY:
        return Verdict.FLAKY
    return "passed" if verdict in GREEN else "failed"


def held_back(session: Session, record: Cell | Timing) -> bool:
    """Return whether a cell is run again before it is reported; timed cells never are."""
    return session.options.rerun and isinstance(record, Cell) and record.verdict in RED
