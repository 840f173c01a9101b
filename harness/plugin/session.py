"""What a pytest process holds for its cells, and what its tests are given of it.

A suite's test calls `cell.check()`, one of the time lane `timed.measure(benchmark)`; all that runs,
judges and records lies behind them, and no hook of pytest's is needed to call them.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conformance.catalogue import loading, names
from conformance.catalogue.claims import Claims
from conformance.catalogue.topology import Topology
from conformance.judging import deviations
from harness.plugin import message
from harness.plugin.options import Options
from harness.plugin.recorder import Recorder
from harness.running import cells, lane
from harness.running.admission import NoRoom
from harness.running.cells import CellId
from harness.running.fleet import HostFleet
from harness.running.lane import Entrant, Lane
from harness.running.pool import Pool, Spent
from harness.running.runner import Runner
from harness.running.shards import unit
from harness.running.shares import Usher
from harness.targets import platforms

GREEN = (names.CONFORMS, names.KNOWN_DEVIATION)
EXCUSED = (names.REMOVED, names.NOT_APPLICABLE)

RECORD = pytest.StashKey[dict[str, Any]]()  # of an item: what is to be recorded of it


@dataclasses.dataclass
class Session:
    """What one pytest process needs for its cells; the pool exists once the first cell ran."""

    options: Options
    catalogue: loading.Catalogue
    claims: Claims
    deviations: tuple[deviations.Deviation, ...]
    recorder: Recorder | None = None
    progress: Callable[[str], None] = lambda _: None
    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    red: list[str] = dataclasses.field(default_factory=list)
    spent: list[Spent] = dataclasses.field(default_factory=list)
    began: float = dataclasses.field(default_factory=time.monotonic)
    timings: int = 0
    runner_made: Runner | None = None
    lane_made: Lane | None = None
    died: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    fleet: HostFleet | None = None  # of a run on hosts, all of whose pools share it
    usher: Usher | None = None  # where agents dial, if test processes have hosts of their own
    heats: dict[CellId, dict[CellId, Entrant]] = dataclasses.field(default_factory=dict)

    def excuses(self, record: Mapping[str, Any]) -> bool:
        """Whether a cell's item is skipped.

        What was not run is so where a package or program that the clause itself asks for is not
        there; where the target is not, only if the user said so.
        """
        if record["verdict"] != names.NOT_RUN:
            return record["verdict"] in EXCUSED
        return bool(record.get("lacks")) or self.options.skip_missing

    @functools.cached_property
    def chosen(self) -> loading.Catalogue:
        """The clauses that the options choose; ValueError where one of them chooses none."""
        return self.catalogue.beginning(self.options.clauses)

    @property
    def runner(self) -> Runner:
        """The runner, made on first use so that collecting starts nothing."""
        if self.runner_made is None:
            self.runner_made = self.make_runner()
        return self.runner_made

    @property
    def lane(self) -> Lane:
        """The time lane, made on first use."""
        if self.lane_made is None:
            self.lane_made = Lane(self.make_runner, self.options.blocks, progress=self.progress)
        return self.lane_made

    def make_runner(self) -> Runner:
        """A runner with a pool of its own."""
        chosen = self.options
        names = [loading.PACKAGE]
        if chosen.hosts is not None and self.fleet is None:
            self.fleet = HostFleet(chosen.hosts, names, chosen.platform, self.progress)
        return Runner(
            self.catalogue,
            self.deviations,
            {one.spec: one for one in chosen.targets},
            Pool(
                names,
                chosen.platform,
                isolated=chosen.isolated,
                progress=self.progress,
                fleet=self.fleet,
            ),
            chosen.deadline_s,
            chosen.repeat,
            platforms.named(chosen.platform).name,
        )

    def heat(self, cell: CellId) -> dict[CellId, Entrant]:
        """The heat of a cell of the time lane: run when the first of its cells asks."""
        if cell not in self.heats:
            if self.runner_made is not None:
                self.runner_made.pool.release()  # nothing else may run beside a heat
            together = [
                one
                for one in self.cells(lane.SECTION)
                if (one.clause, one.topology) == (cell.clause, cell.topology)
            ]
            for group in lane.heats(together, Topology.parse(cell.topology).processes):
                heat = self.lane.heat(group)
                for one in group:
                    self.heats.setdefault(one, heat)
        return self.heats[cell]

    def cells(self, section: str) -> list[CellId]:
        """The cells of a section that the options choose."""
        chosen = self.options
        found = cells.select(
            self.chosen,
            section,
            chosen.implementations,
            [one.spec for one in chosen.targets],
            chosen.topologies,
        )
        if chosen.shard is None:
            return found
        runs = self.catalogue.runs
        return [one for one in found if chosen.shard.has(unit(one, runs))]

    def count(self, record: Mapping[str, Any]) -> None:
        """Count a cell by its verdict, and keep in a line what a red one saw."""
        verdict = record["verdict"]
        self.verdicts[verdict] += 1
        if verdict not in GREEN and not self.excuses(record):
            cell = f"{record['clause']} {record['implementation']} {record['topology']}"
            self.red.append(f"{verdict.upper()} {cell} {record['target']}: {record['reason']}")

    def take(self, nodeid: str, told: Mapping[str, Any]) -> None:
        """Count and record what a test process says of an item."""
        record = told["record"]
        if self.died.pop(nodeid, None) is not None:
            reason = f"{record['reason']}; " if record["reason"] else ""
            again = "run a second time, as the pytest process that ran it first died"
            record = {**record, "reason": f"{reason}{again}"}
        if record["kind"] == "timing":
            self.timings += 1
        else:
            self.count(record)
        if self.recorder is not None:
            self.recorder.cell(record, told["facts"])

    def take_what_died(self) -> None:
        """Count and record the cells whose test process died, and which no other has run."""
        while self.died:
            nodeid = next(iter(self.died))
            self.take(nodeid, self.died.pop(nodeid))

    def close(self) -> list[Spent]:
        """End every cluster; where the time went."""
        made = [self.runner_made] if self.runner_made else []
        made += self.lane_made.runners if self.lane_made else []
        for runner in made:
            runner.pool.close()
        if self.fleet is not None:
            self.fleet.close()
            self.fleet = None
        if self.usher is not None:
            self.usher.close()
            self.usher = None
        return [runner.pool.spent for runner in made]


class Cell:
    """What a suite's test is given: `check()` runs the cell and passes, skips or fails by it."""

    def __init__(self, id: CellId, session: Session, item: pytest.Item) -> None:
        self.id = id
        self._session = session
        self._item = item

    def check(self) -> None:
        """Run the cell. Fails with the whole story unless it conforms or is excused."""
        clause = self._session.catalogue.clauses[self.id.clause]
        runner = self._session.runner
        try:
            record = runner.run(self.id)
        except NoRoom as error:
            pytest.fail(str(error), pytrace=False)
        record["reproduce"] = message.reproduce(
            self._item.nodeid, self.id, clause, self._session.options.platform
        )
        facts = runner.facts.get(self.id.target)
        self._item.stash[RECORD] = {"record": record, "facts": facts}
        verdict, reason = record["verdict"], record["reason"]
        if self._session.excuses(record):
            pytest.skip(f"{verdict}: {reason}")
        if verdict == names.KNOWN_DEVIATION:
            pytest.xfail(f"{verdict}: {reason}")
        if verdict == names.NOT_RUN:
            pytest.fail(not_run(reason), pytrace=False)
        if verdict != names.CONFORMS:
            text = message.failure(self.id, clause, self._session.claims, record)
            pytest.fail(text, pytrace=False)


class Timed:
    """What a test of the time lane is given: `measure` runs its heat and hands in its rounds."""

    def __init__(self, id: CellId, contender: str, session: Session, item: pytest.Item) -> None:
        self.id = id
        self.contender = contender
        self._session = session
        self._item = item

    def measure(self, benchmark: Any) -> None:
        """Give the rounds to pytest-benchmark's fixture; fails where a block was not right."""
        clause = self._session.catalogue.clauses[self.id.clause]
        timing = clause.timing
        assert timing is not None
        try:
            heat = self._session.heat(self.id)
        except NoRoom as error:
            pytest.fail(str(error), pytrace=False)
        mine = heat[self.id]
        verdict, reason = mine.record["verdict"], mine.record["reason"]
        if self._session.excuses(mine.record):
            pytest.skip(f"{verdict}: {reason}")
        if verdict == names.NOT_RUN:
            pytest.fail(not_run(reason), pytrace=False)
        compared = (
            lane.against(self.contender, mine, heat.values(), timing) if mine.measured else []
        )
        self._item.stash[RECORD] = {
            "record": lane.record(mine, self.contender, timing, compared),
            "facts": self._session.lane.facts(self.id.target),
        }
        if verdict == names.KNOWN_DEVIATION:
            pytest.xfail(f"{verdict}: {reason}")
        if not mine.measured:
            mine.record["reproduce"] = message.reproduce(
                self._item.nodeid, self.id, clause, self._session.options.platform
            )
            text = message.failure(self.id, clause, self._session.claims, mine.record)
            pytest.fail(text, pytrace=False)
        rounds = iter([one for block in mine.blocks[self.contender] for one in block])
        benchmark.group = f"{self.id.clause} {self.contender} {self.id.topology}"
        benchmark.extra_info["ratios"] = [str(one) for one in compared]
        benchmark.pedantic(
            lambda: lane.CLOCK.advance(next(rounds)),
            rounds=sum(map(len, mine.blocks[self.contender])),
            iterations=1,
        )


def not_run(reason: str) -> str:
    """Why an item fails although nothing was seen: a run that left it out is not a whole one."""
    return (
        f"{names.NOT_RUN}: {reason}\n  where that is how it must be, --skip-missing-targets "
        "excuses it"
    )
