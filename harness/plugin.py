"""The pytest plugin: thin hooks around options, cells, runner and recorder.

Loaded by the project's pytest settings (`-p harness.plugin`). A test that is marked
`@pytest.mark.section("errors")` and takes `cell` is run once per cell of that section; one that
takes `timed` once per contender of the time lane, which only `-m benchmark` runs.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance import catalogue, deviations, names
from conformance.claims import Claims, load_claims
from conformance.topology import Topology
from harness import cells, lane, message, options
from harness.admission import NoRoom, cores
from harness.cells import CellId
from harness.lane import Entrant, Lane
from harness.options import Options
from harness.pool import Pool, Spent
from harness.recorder import Recorder
from harness.runner import Runner
from harness.target import TargetError

MEMORY_PER_TEST_PROCESS_BYTES = 2 * 1024**3

EXCUSED = (names.REMOVED, names.NOT_APPLICABLE, names.NOT_RUN)


@dataclasses.dataclass
class Session:
    """What one pytest process needs for its cells; the pool exists once the first cell ran."""

    options: Options
    catalogue: catalogue.Catalogue
    claims: Claims
    deviations: tuple[deviations.Deviation, ...]
    recorder: Recorder | None = None
    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    spent: list[Spent] = dataclasses.field(default_factory=list)
    began: float = dataclasses.field(default_factory=time.monotonic)
    timings: int = 0
    runner_made: Runner | None = None
    lane_made: Lane | None = None
    heats: dict[CellId, dict[CellId, Entrant]] = dataclasses.field(default_factory=dict)

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
            self.lane_made = Lane(self.make_runner, progress=_say)
        return self.lane_made

    def make_runner(self) -> Runner:
        """A runner with a pool of its own."""
        chosen = self.options
        return Runner(
            self.catalogue,
            self.deviations,
            {one.spec: one for one in chosen.targets},
            Pool([catalogue.PACKAGE], chosen.platform, isolated=chosen.isolated, progress=_say),
            chosen.deadline_s,
            chosen.repeat,
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
        return cells.select(
            self.catalogue,
            section,
            chosen.implementations,
            [one.spec for one in chosen.targets],
            chosen.topologies,
        )

    def close(self) -> list[Spent]:
        """End every cluster; where the time went."""
        made = [self.runner_made] if self.runner_made else []
        made += self.lane_made.runners if self.lane_made else []
        for runner in made:
            runner.pool.close()
        return [runner.pool.spent for runner in made]


_SESSION = pytest.StashKey[Session]()
_RECORD = pytest.StashKey[dict[str, Any]]()


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
        record["reproduce"] = message.reproduce(self._item.nodeid, self.id, clause)
        facts = runner.facts.get(self.id.target)
        self._item.stash[_RECORD] = {"record": record, "facts": facts}
        verdict, reason = record["verdict"], record["reason"]
        if verdict in EXCUSED:
            pytest.skip(f"{verdict}: {reason}")
        if verdict == names.KNOWN_DEVIATION:
            pytest.xfail(f"{verdict}: {reason}")
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
        if verdict in EXCUSED:
            pytest.skip(f"{verdict}: {reason}")
        compared = (
            lane.against(self.contender, mine, heat.values(), timing) if mine.measured else []
        )
        self._item.stash[_RECORD] = {
            "record": lane.record(mine, self.contender, timing, compared),
            "facts": self._session.lane.facts(self.id.target),
        }
        if not mine.measured:
            mine.record["reproduce"] = message.reproduce(self._item.nodeid, self.id, clause)
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


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "section(name): runs the cells of that section")
    if config.getoption("help", False):
        return
    handed = getattr(config, "workerinput", {}).get("conformance")
    if _wants_benchmark(config) and config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "the time lane runs by itself, as its figures would be those of a busy machine: leave "
            "out -n"
        )
    try:
        chosen = Options.load(handed) if handed else options.read(config, _say)
        session = Session(chosen, catalogue.load(), load_claims(), deviations.load_all())
        session.catalogue.check(session.claims)
        if not handed and config.getoption("results"):
            file = Path(config.getoption("results"))
            session.recorder = Recorder(file, chosen.run, session.catalogue, session.claims)
    except (TargetError, ValueError, OSError) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_SESSION] = session
    config.pluginmanager.register(_SessionHooks(session), "conformance-session")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    session = metafunc.config.stash[_SESSION]
    mark = metafunc.definition.get_closest_marker("section")
    if mark is not None and "cell" in metafunc.fixturenames:
        metafunc.parametrize("cell_id", session.cells(mark.args[0]), ids=str)
    if "timed" in metafunc.fixturenames:
        metafunc.parametrize("contender", _contenders(session), ids=_contender_name)


def _contenders(session: Session) -> list[tuple[CellId, str]]:
    """Every contender of every cell of the time lane, those of a heat after one another."""
    found = sorted(session.cells(lane.SECTION), key=lambda c: (c.clause, c.topology))
    timings = {id: one.timing for id, one in session.catalogue.clauses.items()}
    return [
        (id, contender)
        for id in found
        if (timing := timings[id.clause]) is not None
        for contender in timing.contenders
    ]


def _contender_name(contender: tuple[CellId, str]) -> str:
    id, name = contender
    return str(dataclasses.replace(id, clause=f"{id.clause}:{name.replace(' ', '_')}"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cells of one cluster after one another, whichever section; the time lane if asked for."""
    if not _wants_benchmark(config):
        lane_items = [item for item in items if "timed" in getattr(item, "fixturenames", ())]
        if lane_items:
            config.hook.pytest_deselected(items=lane_items)
            items[:] = [item for item in items if item not in lane_items]
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        timed = "timed" in getattr(item, "fixturenames", ())
        groups.setdefault("" if timed else cells.group(item.nodeid), []).append(item)
    items[:] = [item for group in groups.values() for item in group]


def _wants_benchmark(config: pytest.Config) -> bool:
    chosen = config.getoption("markexpr", "") or ""
    return "benchmark" in chosen and "not benchmark" not in chosen


@pytest.fixture
def cell(cell_id: CellId, request: pytest.FixtureRequest) -> Cell:
    """The cell that this item runs."""
    return Cell(cell_id, request.config.stash[_SESSION], request.node)


@pytest.fixture
def timed(contender: tuple[CellId, str], request: pytest.FixtureRequest) -> Timed:
    """The contender of the time lane that this item measures."""
    return Timed(*contender, request.config.stash[_SESSION], request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and _RECORD in item.stash:
        # As text: xdist carries only plain attributes.
        report.conformance = json.dumps(item.stash[_RECORD])  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    ours = session.config.stash.get(_SESSION, None)
    if ours is None:
        return
    ours.spent += ours.close()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["conformance"] = json.dumps([dataclasses.asdict(s) for s in ours.spent])


def pytest_unconfigure(config: pytest.Config) -> None:
    ours = config.stash.get(_SESSION, None)
    if ours is None:
        return
    ours.close()
    if ours.recorder is not None:
        ours.recorder.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is None or not (session.verdicts or session.timings):
        return
    total = functools.reduce(_add, session.spent, Spent())
    counts = ", ".join(f"{session.verdicts[v]} {v}" for v in names.VERDICTS if session.verdicts[v])
    terminalreporter.write_sep("-", "conformance")
    if session.verdicts:
        terminalreporter.write_line(f"{sum(session.verdicts.values())} cells: {counts}")
    if session.timings:
        terminalreporter.write_line(f"{session.timings} contenders of the time lane")
    busy = total.probes + total.harness + total.starting
    if busy:
        terminalreporter.write_line(
            f"{total.cells} cases on {total.clusters} clusters: "
            f"{total.probes:.1f} s in probes ({total.probes / busy:.1%}), {total.harness:.1f} s of "
            f"the harness's own ({total.harness / busy:.1%}), {total.starting:.1f} s starting "
            f"targets and clusters ({total.starting / busy:.1%})"
        )
    if session.recorder is not None:
        terminalreporter.write_line(f"results: {config.getoption('results')}")


class _SessionHooks:
    """The hooks that are given no config, so need the session by other means."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: Any) -> None:
        text = getattr(report, "conformance", None)
        if text is None:
            return
        told = json.loads(text)
        if told["record"]["kind"] == "timing":
            self._session.timings += 1
        else:
            self._session.verdicts[told["record"]["verdict"]] += 1
        if self._session.recorder is not None:
            self._session.recorder.cell(told["record"], told["facts"])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["conformance"] = self._session.options.dump()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        for one in json.loads(getattr(node, "workeroutput", {}).get("conformance", "[]")):
            self._session.spent.append(Spent(**one))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getoption("dist") != "load":
            return None  # the user asked for another way to distribute
        from harness.scheduler import ClusterScheduling

        return ClusterScheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_auto_num_workers(self) -> int:
        by_memory = psutil.virtual_memory().total // MEMORY_PER_TEST_PROCESS_BYTES
        return max(1, min(cores(), int(by_memory)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A cell whose pytest process died is on record as not run, never missing."""
        id = cells.parse_nodeid(crashitem)
        if id is None:
            return
        record = {
            "kind": "cell",
            **dataclasses.asdict(id),
            "verdict": names.NOT_RUN,
            "reason": "the pytest process that ran this cell died",
            "findings": [],
            "deviation": None,
            "observations": [],
            "fault": None,
            "seconds": 0.0,
            "probe_seconds": 0.0,
            "fresh": False,
            "reproduce": message.reproduce(
                crashitem, id, self._session.catalogue.clauses[id.clause]
            ),
        }
        report.conformance = json.dumps({"record": record, "facts": None})


def _add(a: Spent, b: Spent) -> Spent:
    pairs = zip(dataclasses.astuple(a), dataclasses.astuple(b), strict=True)
    return Spent(*(x + y for x, y in pairs))


def _say(text: str) -> None:
    print(f"conformance: {text}", file=sys.stderr, flush=True)
