"""The pytest plugin: thin hooks around options, cells, runner and recorder.

Loaded by the project's pytest settings (`-p harness.plugin`). A test that is marked
`@pytest.mark.section("errors")` and takes `cell` is run once per cell of that section.
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
from harness import cells, message, options
from harness.admission import NoRoom, cores
from harness.cells import CellId
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
    runner_made: Runner | None = None

    @property
    def runner(self) -> Runner:
        """The runner, made on first use so that collecting starts nothing."""
        if self.runner_made is None:
            chosen = self.options
            self.runner_made = Runner(
                self.catalogue,
                self.deviations,
                {one.spec: one for one in chosen.targets},
                Pool(
                    [catalogue.PACKAGE],
                    chosen.platform,
                    isolated=chosen.isolated,
                    progress=_say,
                ),
                chosen.deadline_s,
                chosen.repeat,
            )
        return self.runner_made


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


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "section(name): runs the cells of that section")
    if config.getoption("help", False):
        return
    handed = getattr(config, "workerinput", {}).get("conformance")
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
    mark = metafunc.definition.get_closest_marker("section")
    if mark is None or "cell" not in metafunc.fixturenames:
        return
    session = metafunc.config.stash[_SESSION]
    chosen = session.options
    found = cells.select(
        session.catalogue,
        mark.args[0],
        chosen.implementations,
        [one.spec for one in chosen.targets],
        chosen.topologies,
    )
    metafunc.parametrize("cell_id", found, ids=str)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cells of one cluster after one another, whichever section they are of."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(cells.group(item.nodeid), []).append(item)
    items[:] = [item for group in groups.values() for item in group]


@pytest.fixture
def cell(cell_id: CellId, request: pytest.FixtureRequest) -> Cell:
    """The cell that this item runs."""
    return Cell(cell_id, request.config.stash[_SESSION], request.node)


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
    if ours.runner_made is not None:
        ours.runner_made.pool.close()
        ours.spent.append(ours.runner_made.pool.spent)
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["conformance"] = json.dumps([dataclasses.asdict(s) for s in ours.spent])


def pytest_unconfigure(config: pytest.Config) -> None:
    ours = config.stash.get(_SESSION, None)
    if ours is None:
        return
    if ours.runner_made is not None:
        ours.runner_made.pool.close()
    if ours.recorder is not None:
        ours.recorder.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is None or not session.verdicts:
        return
    total = functools.reduce(_add, session.spent, Spent())
    counts = ", ".join(f"{session.verdicts[v]} {v}" for v in names.VERDICTS if session.verdicts[v])
    terminalreporter.write_sep("-", "conformance")
    terminalreporter.write_line(f"{sum(session.verdicts.values())} cells: {counts}")
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
