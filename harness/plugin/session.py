"""The state of a pytest process that runs cells, and the objects that its tests receive.

A suite's test calls `cell.check()`, one of the time lane `timed.measure(benchmark)`; neither needs
a hook of pytest.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.catalogue import loading
from conformance.catalogue.claims import Claims
from conformance.catalogue.compiled import looks_at_compiled
from conformance.commandline import ending
from conformance.judging import deviations
from conformance.model.records import Cell as Record
from conformance.model.records import Timing
from conformance.model.verdicts import Verdict
from conformance.spec.topology import Topology
from harness.plugin import message
from harness.plugin.options import Options
from harness.results.recorder import Recorder
from harness.running import cells, lane, tiers
from harness.running.admission import NoRoom, waiting_threads
from harness.running.background import Background, Outcome
from harness.running.cells import CellId
from harness.running.fleet import Fleet, HostFleet, LocalFleet
from harness.running.lane import Lane, Participant
from harness.running.pool import Pool, Spent
from harness.running.runner import Runner
from harness.running.shards import unit
from harness.running.shares import HostAllocator
from harness.targets import platforms

GREEN = (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION)
RED = (Verdict.DEVIATES, Verdict.CRASHED, Verdict.HUNG)  # a second run may see something else
EXCUSED = (Verdict.REMOVED, Verdict.NOT_APPLICABLE)

OUTCOME = pytest.StashKey[Outcome]()  # of an item: what is to be recorded of it


@dataclasses.dataclass(repr=False)  # a traceback that shows it stays short
class Session:
    """What one pytest process needs for its cells; the pool is created with the first cell."""

    options: Options
    catalogue: loading.Catalogue
    claims: Claims
    deviations: tuple[deviations.Deviation, ...]
    recorder: Recorder | None = None
    progress: Callable[[str], None] = lambda _: None
    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    red: list[str] = dataclasses.field(default_factory=list)
    flaky: list[str] = dataclasses.field(default_factory=list)
    spent: list[Spent] = dataclasses.field(default_factory=list)
    began: float = dataclasses.field(default_factory=time.monotonic)
    timings: int = 0
    runner_made: Runner | None = None
    lane_made: Lane | None = None
    died: dict[str, Outcome] = dataclasses.field(default_factory=dict)
    fleet: HostFleet | None = None  # of a run on hosts, all of whose pools share it
    background: Background | None = None  # runs cells that mostly wait
    local_fleet: LocalFleet | None = None  # of a run on this machine, all of whose pools share it
    # Where agents dial, if test processes have hosts of their own.
    allocator: HostAllocator | None = None
    measured: dict[CellId, dict[CellId, Participant]] = dataclasses.field(default_factory=dict)

    def excuses(self, record: Record) -> bool:
        """Return whether a cell's item is skipped.

        A cell that was not run is skipped if a package or program that the clause requires is
        missing; a missing target skips only if the user allowed it.
        """
        if record.verdict != Verdict.NOT_RUN:
            return record.verdict in EXCUSED
        return bool(record.lacks) or self.options.skip_missing

    @functools.cached_property
    def chosen(self) -> loading.Catalogue:
        """Return the clauses that the options select; ValueError if one of them selects none."""
        return self.catalogue.beginning(self.options.clauses)

    @property
    def runner(self) -> Runner:
        """The runner, created on first use so that collecting starts nothing."""
        if self.runner_made is None:
            self.runner_made = self.make_runner()
        return self.runner_made

    @property
    def lane(self) -> Lane:
        """The time lane, created on first use."""
        if self.lane_made is None:
            self.lane_made = Lane(self.make_runner, self.options.blocks, progress=self.progress)
        return self.lane_made

    def release(self) -> None:
        """Close the warm cluster, if any."""
        if self.runner_made is not None:
            self.runner_made.pool.release()

    def make_runner(self, *, alone: bool = False) -> Runner:
        """Return a runner with its own pool; with `alone`, each case gets a fresh cluster."""
        chosen = self.options
        if chosen.hosts is not None and self.fleet is None:
            packages = [loading.PACKAGE]
            self.fleet = HostFleet(chosen.hosts, packages, chosen.platform, self.progress)
        return self._runner(self.fleet or self._shared_fleet(), isolated=chosen.isolated or alone)

    def _shared_fleet(self) -> LocalFleet:
        if self.local_fleet is None:
            self.local_fleet = LocalFleet([loading.PACKAGE], self.options.platform)
        return self.local_fleet

    def _runner(self, fleet: Fleet, *, isolated: bool = False, waiting: bool = False) -> Runner:
        chosen = self.options
        pool = Pool(
            [loading.PACKAGE],
            chosen.platform,
            isolated=isolated,
            progress=self.progress,
            fleet=fleet,
            waiting=waiting,
        )
        return Runner(
            self.catalogue,
            self.deviations,
            {one.spec: one for one in chosen.targets},
            pool,
            chosen.deadline_s,
            chosen.repeat,
            platforms.named(chosen.platform).name,
        )

    def waits(self, cell: CellId) -> bool:
        """Return whether a cell mostly waits, so that others may run beside it.

        Never with hosts or devices, which serve one cluster at a time.
        """
        alone = self.options.hosts is not None or platforms.named(self.options.platform).has_devices
        return not alone and tiers.duration(tiers.run_of(cell, self.catalogue)).waits

    def looks_at_compiled(self, cell: CellId) -> bool:
        """Return whether a cell needs a cluster that compiles as a user's process does."""
        clause = self.catalogue.clauses.get(cell.clause)  # none of a test that looks like a cell
        return clause is not None and looks_at_compiled(clause)

    def seconds(self, cell: CellId) -> float:
        """Return how long a cell's run took when it was measured."""
        return tiers.duration(tiers.run_of(cell, self.catalogue)).seconds

    def start_in_background(self, cell: CellId) -> bool:
        """Start a cell in a thread of its own if it mostly waits; return whether it does."""
        if not self.waits(cell):
            return False
        if self.background is None:
            self.background = Background(self._waiting_runner, waiting_threads())
        self.background.start(cell, tiers.run_of(cell, self.catalogue))
        return True

    def _waiting_runner(self) -> Runner:
        return self._runner(self._shared_fleet(), isolated=self.options.isolated, waiting=True)

    def run(self, cell: CellId) -> Outcome:
        """Run a cell, or wait for it if it runs in the background."""
        outcome = self.background.result(cell) if self.background is not None else None
        if outcome is not None:
            return outcome
        record = self.runner.run(cell)
        return Outcome(record, self.runner.facts.get(cell.target))

    def failure(self, cell: CellId, record: Record, facts: Mapping[str, Any] | None) -> str:
        """Return the message of a red cell, which names the entries that are not about it."""
        entries = []
        if facts is not None:
            there = (facts["jax"], facts["platform"], cell.topology, facts["packages"])
            entries = deviations.of_other_cells(
                self.deviations, cell.clause, cell.implementation, *there
            )
        clause = self.catalogue.clauses[cell.clause]
        return message.failure(cell, clause, self.claims, record, entries)

    def measured_with(self, cell: CellId) -> dict[CellId, Participant]:
        """Return the participants of a cell's group in the time lane, which its first cell runs."""
        if cell not in self.measured:
            self.release()  # nothing else may run beside the time lane
            together = [
                one
                for one in self.cells(lane.SECTION)
                if (one.clause, one.topology) == (cell.clause, cell.topology)
            ]
            for group in lane.groups_of(together, Topology.parse(cell.topology).processes):
                participants = self.lane.run_group(group)
                for one in group:
                    self.measured.setdefault(one, participants)
        return self.measured[cell]

    def cells(self, section: str) -> list[CellId]:
        """Return the cells of a section that the options select."""
        found = self._selected(section)
        if section != lane.SECTION and self.tier is not None:
            added = self.options.added
            found = [one for one in found if one in self.tier.cells or one.clause in added]
        shard, runs = self.options.shard, self.catalogue.runs
        return found if shard is None else [one for one in found if shard.has(unit(one, runs))]

    def _selected(self, section: str) -> list[CellId]:
        chosen = self.options
        return cells.select(
            self.chosen,
            section,
            chosen.implementations,
            [one.spec for one in chosen.targets],
            chosen.topologies,
        )

    @functools.cached_property
    def tier(self) -> tiers.Tier | None:
        """Return the core tier of the selected cells; None if the options select every cell."""
        if self.options.tier != tiers.CORE:
            return None
        every = [id for name in self.catalogue.sections() for id in self._selected(name)]
        versions = {one.spec: one.jax for one in self.options.targets}
        platform = platforms.named(self.options.platform).name
        return tiers.core(every, self.catalogue, self.deviations, versions, platform)

    def count(self, record: Record) -> None:
        """Count a cell by its verdict, and keep one line of evidence if it is red."""
        verdict = record.verdict
        self.verdicts[verdict] += 1
        if verdict not in GREEN and not self.excuses(record):
            cell = f"{record.clause} {record.implementation} {record.topology}"
            line = f"{verdict.upper()} {cell} {record.target}: {record.reason}"
            (self.flaky if verdict == Verdict.FLAKY else self.red).append(line)

    def take(self, nodeid: str, outcome: Outcome) -> None:
        """Count and record what a test process reports of an item."""
        record = outcome.record
        died = self.died.pop(nodeid, None) is not None
        if died and isinstance(record, Record):
            reason = f"{record.reason}; " if record.reason else ""
            again = "run a second time, as the pytest process that ran it first died"
            record = replace(record, reason=f"{reason}{again}")
        if isinstance(record, Timing):
            self.timings += 1
        else:
            self.count(record)
        if self.recorder is not None:
            try:
                self.recorder.cell(record, outcome.facts)
            except OSError as error:  # a full disk: what follows would be lost as well
                text = f"results cannot be written: {ending.reason(error)}"
                pytest.exit(text, ending.EXIT_FAILED)

    def take_what_died(self) -> None:
        """Count and record the cells whose test process died and that no other process has run."""
        while self.died:
            nodeid = next(iter(self.died))
            self.take(nodeid, self.died.pop(nodeid))

    def close(self) -> list[Spent]:
        """End every cluster; return where the time was spent."""
        made = [self.runner_made] if self.runner_made else []
        if self.background is not None:
            made += self.background.runners
            self.background.close()
            self.background = None
        made += self.lane_made.runners if self.lane_made else []
        for runner in made:
            runner.pool.close()
        if self.local_fleet is not None:
            self.local_fleet.close()
            self.local_fleet = None
        if self.fleet is not None:
            self.fleet.close()
            self.fleet = None
        if self.allocator is not None:
            self.allocator.close()
            self.allocator = None
        return [runner.pool.spent for runner in made]


def cell_of(item: pytest.Item) -> CellId | None:
    """Return the cell that an item runs; None if it runs none, or is timed."""
    if "cell" not in getattr(item, "fixturenames", ()):
        return None
    found = getattr(getattr(item, "callspec", None), "params", {}).get("cell_id")
    return found if isinstance(found, CellId) else None


class Cell:
    """The argument of a suite's test: `check()` runs the cell and passes, skips or fails."""

    def __init__(self, id: CellId, session: Session, item: pytest.Item) -> None:
        self.id = id
        self._session = session
        self._item = item

    def check(self) -> None:
        """Run the cell; fail with the full message unless it conforms or is excused."""
        clause = self._session.catalogue.clauses[self.id.clause]
        try:
            outcome = self._session.run(self.id)
        except NoRoom as error:
            pytest.fail(str(error), pytrace=False)
        assert isinstance(outcome.record, Record)
        reproduce = message.reproduce(
            self._item.nodeid, self.id, clause, self._session.options.platform
        )
        record = replace(outcome.record, reproduce=reproduce)
        self._item.stash[OUTCOME] = Outcome(record, outcome.facts)
        verdict, reason = record.verdict, record.reason
        if self._session.excuses(record):
            pytest.skip(f"{verdict}: {reason}")
        if verdict == Verdict.KNOWN_DEVIATION:
            raise known(reason)
        if verdict == Verdict.NOT_RUN:
            pytest.fail(not_run(reason), pytrace=False)
        if verdict != Verdict.CONFORMS:
            pytest.fail(self._session.failure(self.id, record, outcome.facts), pytrace=False)


class Timed:
    """The argument of a test of the time lane: `measure` runs its group and returns its rounds."""

    def __init__(self, id: CellId, contender: str, session: Session, item: pytest.Item) -> None:
        self.id = id
        self.contender = contender
        self._session = session
        self._item = item

    def measure(self, benchmark: Any) -> None:
        """Pass the rounds to pytest-benchmark's fixture; fail if a block returned wrong values."""
        clause = self._session.catalogue.clauses[self.id.clause]
        timing = clause.timing
        assert timing is not None
        try:
            participants = self._session.measured_with(self.id)
        except NoRoom as error:
            pytest.fail(str(error), pytrace=False)
        measured = participants[self.id]
        assert measured.record is not None
        verdict, reason = measured.record.verdict, measured.record.reason
        if self._session.excuses(measured.record):
            pytest.skip(f"{verdict}: {reason}")
        if verdict == Verdict.NOT_RUN:
            pytest.fail(not_run(reason), pytrace=False)
        compared = (
            lane.against(self.contender, measured, participants.values(), timing)
            if measured.measured
            else []
        )
        self._item.stash[OUTCOME] = Outcome(
            lane.record(measured, self.contender, timing, compared),
            self._session.lane.facts(self.id.target),
        )
        if verdict == Verdict.KNOWN_DEVIATION:
            raise known(reason)
        if not measured.measured:
            reproduce = message.reproduce(
                self._item.nodeid, self.id, clause, self._session.options.platform
            )
            record = replace(measured.record, reproduce=reproduce)
            text = message.failure(self.id, clause, self._session.claims, record)
            pytest.fail(text, pytrace=False)
        rounds = iter([one for block in measured.blocks[self.contender] for one in block])
        benchmark.group = f"{self.id.clause} {self.contender} {self.id.topology}"
        benchmark.extra_info["ratios"] = [str(one) for one in compared]
        benchmark.pedantic(
            lambda: lane.CLOCK.advance(next(rounds)),
            rounds=sum(map(len, measured.blocks[self.contender])),
            iterations=1,
        )


def known(reason: str) -> BaseException:
    """Return the exception that ends the item of a known deviation.

    `pytest.xfail` raises one whose report has the source of its caller, which is parsed each time.
    """
    text = f"{Verdict.KNOWN_DEVIATION}: {reason}"
    failure: BaseException = pytest.xfail.Exception(text, pytrace=False)
    return failure


def not_run(reason: str) -> str:
    """Return the failure message of an item that was not run: the run is incomplete without it."""
    return (
        f"{Verdict.NOT_RUN}: {reason}\n  where that is how it must be, --skip-missing-targets "
        "excuses it"
    )
