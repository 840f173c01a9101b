"""The pytest plugin: thin hooks around options, cells, runner and recorder.

The project's pytest settings load it (`-p harness.plugin`). A test marked
`@pytest.mark.section("errors")` that takes `cell` runs once per cell of that section; one that
takes `timed` runs once per contender of the time lane, only with `-m benchmark`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import json
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psutil
import pytest

from conformance.catalogue import causes, loading
from conformance.catalogue.claims import load_claims
from conformance.commandline.counting import counted
from conformance.commandline.ending import reason
from conformance.judging import deviations
from conformance.model.verdicts import RECORDED, Verdict
from conformance.worker.folders import sweep
from harness.plugin import changed, hosting, options, replacing, resumed_cells, sharding
from harness.plugin.lost import Lost
from harness.plugin.options import Options
from harness.plugin.progress import ProgressReporter
from harness.plugin.rerun import AGAIN, Rerun, held_back
from harness.plugin.resumed_cells import ResumedCells
from harness.plugin.session import OUTCOME, Cell, Session, Timed, cell_of
from harness.plugin.waiting import Waiting
from harness.running import cells, lane, tiers
from harness.running.admission import cores
from harness.running.background import Outcome
from harness.running.cells import CellId
from harness.running.fleet import LocalFleet
from harness.running.pool import Spent
from harness.running.shares import HostAllocator, Shares
from harness.targets.target import TargetError

MEMORY_PER_TEST_PROCESS_BYTES = 2 * 1024**3
# Neither interrupted, nor stopped at a failure (-x), nor broken.
ENDED_OF_ITSELF = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
MOST_RED = 60  # red cells named at the end of a run, each with its reason

_SESSION = pytest.StashKey[Session]()
_RESUMED = pytest.StashKey[ResumedCells]()
_RERUN = pytest.StashKey[Rerun]()
_REPORTER = pytest.StashKey[ProgressReporter]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `options.add`."""
    options.add(parser)


def _require_paths(config: pytest.Config) -> None:
    """Reject a path that does not exist: xdist would answer with an internal error, and late."""
    if config.getoption("pyargs"):
        return
    for argument in config.args:
        path = argument.split("::")[0]
        if not (config.invocation_params.dir / path).exists():
            raise pytest.UsageError(
                f"no file or folder is called {path}: name what to collect, such as suites/"
            )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the options and load the catalogue; start the results file in the controller.

    pytest.UsageError if an option is wrong, or a clause or target that it names does not exist.
    """
    config.addinivalue_line("markers", "section(name): runs the cells of that section")
    if config.getoption("help", False):
        return
    handed = getattr(config, "workerinput", {}).get("conformance")
    if handed:
        # Of pytest-benchmark, as its process ends: in the midst of the others' progress line.
        warnings.filterwarnings("ignore", "Benchmarks are automatically disabled")
    else:
        _require_paths(config)
    _require_one_machine(config)
    reporter = config.stash[_REPORTER] = ProgressReporter(config)
    gc.disable()  # what is loaded here stays: looking through it for garbage finds none
    try:
        session, resumed = _started(config, reporter, handed)
    except OSError as error:
        raise pytest.UsageError(reason(error)) from error
    except (TargetError, ValueError) as error:
        raise pytest.UsageError(str(error)) from error
    finally:
        gc.freeze()
        gc.enable()
    _register(config, session, resumed, handed)


def _require_one_machine(config: pytest.Config) -> None:
    """Reject options that would run timing tests in several processes or on several machines."""
    if not _wants_benchmark(config):
        return
    if config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "timing tests need an otherwise idle machine, so they run in one process: leave out -n"
        )
    if config.getoption("shard"):
        raise pytest.UsageError(
            "timing tests compare cells that run in turns on one machine: leave out --shard"
        )


def _started(
    config: pytest.Config, reporter: ProgressReporter, handed: Any
) -> tuple[Session, ResumedCells | None]:
    """Return the session, and what it resumes; the options are `handed` to a test process."""
    chosen = Options.load(handed) if handed else options.read(config, reporter)
    with contextlib.ExitStack() as undo:
        fleet = _begun(config, chosen)
        if fleet is not None:
            undo.callback(fleet.close)
        known = deviations.load_all()
        session = Session(
            chosen, loading.load(), load_claims(), known, progress=reporter, local_fleet=fleet
        )
        session.catalogue.beginning(chosen.clauses)  # refused here, before any test is collected
        resumed = None
        if not handed:
            _check(session)
            _choose_changed(config, session)
            resumed_cells.check(config)
            sharding.choose(config, session)
            _listen(config, session)
            resumed_cells.record(config, session)
            resumed = resumed_cells.begin(config, session)
        undo.pop_all()  # from here on the session ends it
    return session, resumed


def _register(
    config: pytest.Config, session: Session, resumed: ResumedCells | None, handed: Any
) -> None:
    """Register what runs and reports the cells of a session."""
    config.stash[_SESSION] = session
    if resumed is not None:
        config.stash[_RESUMED] = resumed
    hosts, divided = session.options.hosts, None
    if hosts is not None and not handed and (among := hosting.processes_of(config)):
        divided = Shares(hosts, among)
    lost = Lost(session)
    rerun = None if handed else Rerun(session, config, lost)
    hooks = _SessionHooks(session, lost, rerun, resumed, divided)
    config.pluginmanager.register(hooks, "conformance-session")
    config.pluginmanager.register(Waiting(session), "conformance-waiting")
    if rerun is not None:
        config.stash[_RERUN] = rerun
        config.pluginmanager.register(rerun, "conformance-rerun")


def _begun(config: pytest.Config, chosen: Options) -> LocalFleet | None:
    """Return a fleet whose target imports JAX while this process loads the catalogue.

    None if it is uncertain that this process runs cells of one target on this machine.
    """
    elsewhere = chosen.hosts is not None or bool(config.getoption("numprocesses", None))
    targets = [one.target for one in chosen.targets if one.target is not None]
    if elsewhere or not chosen.clauses or config.option.collectonly or len(targets) != 1:
        return None
    fleet = LocalFleet([loading.PACKAGE], chosen.platform)
    fleet.launcher(targets[0]).begin()
    return fleet


def _check(session: Session) -> None:
    """Raise ValueError if the catalogue, its claims, known issues and deviation entries
    contradict.
    """
    session.catalogue.check(session.claims)
    orphans = deviations.of_no_clause(session.deviations, session.catalogue.clauses)
    orphans += deviations.of_no_package(session.deviations, session.catalogue.clauses)
    if orphans:
        raise ValueError("; ".join(orphans))
    named = deviations.naming_causes(session.deviations, session.catalogue.clauses.values())
    causes.check(causes.load_causes(), session.catalogue.clauses, named)


# At the top, as xdist asks before any plugin is configured; before its own, whose answer is cores.
@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one more than the cores, because cells that wait need none."""
    by_memory = psutil.virtual_memory().total // MEMORY_PER_TEST_PROCESS_BYTES
    return max(1, min(cores() + 1, int(by_memory)))


def _choose_changed(config: pytest.Config, session: Session) -> None:
    """Narrow the run to the clauses that `--changed-since` finds, or add them to the core tier."""
    ref = config.getoption("changed_since")
    if ref is None:
        return
    found = changed.clauses(session.catalogue, ref, session.progress)
    if session.options.tier == tiers.CORE:
        session.options = dataclasses.replace(session.options, added=found)
    elif found:
        session.options = dataclasses.replace(session.options, clauses=found)
    else:
        raise ValueError(
            f"--changed-since {ref}: no clause differs from {ref}, so nothing is to be run; "
            "--tier core runs each fact once"
        )


def _listen(config: pytest.Config, session: Session) -> None:
    """Route agents that are started by hand, if test processes have hosts of their own."""
    hosts, among = session.options.hosts, hosting.processes_of(config)
    if hosts is not None and hosts.launcher is None and among:
        session.allocator = HostAllocator(hosts, among, session.progress)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a section's test with its cells, and the timing test with its contenders."""
    session = metafunc.config.stash[_SESSION]
    mark = metafunc.definition.get_closest_marker("section")
    if mark is not None and "cell" in metafunc.fixturenames:
        metafunc.parametrize("cell_id", session.cells(mark.args[0]), ids=str)
    if "timed" in metafunc.fixturenames:
        metafunc.parametrize("contender", _contenders(session), ids=_contender_name)


def _contenders(session: Session) -> list[tuple[CellId, str]]:
    """Return every contender of every cell of the time lane, group by group."""
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
    """Sort cells: waiting ones first, so that they wait beside all others; one cluster's together.

    The time lane comes last, if requested. If clauses are named, all other tests are deselected.
    """
    session = config.stash[_SESSION]
    by_name = bool(session.options.clauses)
    unasked = [item for item in items if _has_no_cell(item) or (by_name and not _is_cell(item))]
    config.hook.pytest_deselected(items=unasked)
    items[:] = [item for item in items if item not in unasked]
    sharding.leave_out(config, items, session)
    resumed_cells.leave_out(config, items, config.stash.get(_RESUMED, None))
    timed: list[pytest.Item] = []
    groups: dict[str, list[pytest.Item]] = {cells.WAITING: []}
    for item in items:
        if "timed" in getattr(item, "fixturenames", ()):
            timed.append(item)
        else:
            name = cells.group(
                item.nodeid, waits=session.waits, looks_at_compiled=session.looks_at_compiled
            )
            groups.setdefault(name, []).append(item)
    items[:] = [item for group in groups.values() for item in group]
    if _wants_benchmark(config):
        items += timed
    elif timed:
        config.hook.pytest_deselected(items=timed)


def _is_cell(item: pytest.Item) -> bool:
    """Return whether an item runs a cell or is timed, judging by its parameters."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return not parameters.keys().isdisjoint(("cell_id", "contender"))


def _has_no_cell(item: pytest.Item) -> bool:
    """Return whether an item is the placeholder of a section without chosen cells."""
    return "cell" in getattr(item, "fixturenames", ()) and cell_of(item) is None


def _wants_benchmark(config: pytest.Config) -> bool:
    chosen = config.getoption("markexpr", "") or ""
    return "benchmark" in chosen and "not benchmark" not in chosen


@pytest.fixture
def cell(cell_id: CellId, request: pytest.FixtureRequest) -> Cell:
    """Return the cell of this item."""
    return Cell(cell_id, request.config.stash[_SESSION], request.node)


@pytest.fixture
def timed(contender: tuple[CellId, str], request: pytest.FixtureRequest) -> Timed:
    """Return the contender that this item times."""
    return Timed(*contender, request.config.stash[_SESSION], request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach a cell's outcome to its report, and mark it if it is flaky or will be run again."""
    report = yield
    if call.when == "call" and OUTCOME in item.stash:
        # As text: xdist carries only plain attributes.
        report.conformance = item.stash[OUTCOME].dump()  # type: ignore[attr-defined]
        record = item.stash[OUTCOME].record
        if held_back(item.config.stash[_SESSION], record):
            report.outcome = AGAIN  # type: ignore[assignment]
        elif record.verdict == Verdict.FLAKY:
            report.outcome = Verdict.FLAKY  # type: ignore[assignment]
    return report


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Return how the terminal shows outcomes that pytest does not know."""
    if report.outcome == AGAIN:
        return AGAIN, "R", ("RUN AGAIN LATER", {"yellow": True})
    if report.outcome == Verdict.FLAKY:
        return Verdict.FLAKY, "f", ("FLAKY", {"yellow": True})
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop() -> Generator[None, Any, Any]:
    """Let pytest end cleanly after a Ctrl-C that reached Python at an instruction without a line.

    pytest, which shows the line of each frame, would end with an internal error.
    """
    try:
        return (yield)
    except KeyboardInterrupt as interrupt:
        if any(line is None for _, line in traceback.walk_tb(interrupt.__traceback__)):
            raise KeyboardInterrupt from None
        raise


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End the clusters of this process, and send their CPU seconds to the controller."""
    ours = session.config.stash.get(_SESSION, None)
    if ours is None:
        return
    ours.take_what_died()
    ours.spent += ours.close()
    sweep()  # test processes that were killed have removed nothing
    carried = session.config.stash.get(_RESUMED, None)
    if carried is not None and carried.carried and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK  # nothing was left to run
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["conformance"] = json.dumps([dataclasses.asdict(s) for s in ours.spent])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Complete the results file, or remove it if nothing ran, and end what still runs."""
    ours = config.stash.get(_SESSION, None)
    if ours is not None:
        _end(config, ours)
    if (reporter := config.stash.get(_REPORTER, None)) is not None:
        reporter.close()


def _end(config: pytest.Config, ours: Session) -> None:
    ours.close()
    if (carried := config.stash.get(_RESUMED, None)) is not None:
        carried.close()
    if ours.recorder is not None:
        ours.recorder.close()


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Print the counts of verdicts, the times, the flaky and red cells, and the results file."""
    session = config.stash.get(_SESSION, None)
    if session is None or not (session.verdicts or session.timings):
        return
    terminalreporter.write_sep("-", "conformance")
    carried = config.stash.get(_RESUMED, None)
    for line in (
        *_counts(session),
        *(carried.summary_lines() if carried is not None else ()),
        *_times(session),
    ):
        terminalreporter.write_line(line)
    for line in session.flaky[:MOST_RED]:
        terminalreporter.write_line(line, yellow=True)
    if (rerun := config.stash.get(_RERUN, None)) is not None and rerun.left_out:
        cells_were = counted(rerun.left_out, "red cell was", "red cells were")
        terminalreporter.write_line(f"{cells_were} not run again: there are too many")
    for line in session.red[:MOST_RED]:
        terminalreporter.write_line(line, red=True)
    if len(session.red) > MOST_RED:
        terminalreporter.write_line(f"and {len(session.red) - MOST_RED} more red cells", red=True)
    if session.recorder is not None:
        terminalreporter.write_line(resumed_cells.results(config, session.recorder))
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            terminalreporter.write_line(
                "interrupted: cells that had not ended are missing; run them by "
                f"--resume {config.getoption('results')} --results ANOTHER"
            )


def _counts(session: Session) -> Iterator[str]:
    """Yield how many cells have each verdict, and how many runs the tier has."""
    order = sorted(RECORDED, key=lambda verdict: verdict != Verdict.FLAKY)  # flaky first
    counts = ", ".join(f"{session.verdicts[v]} {v}" for v in order if session.verdicts[v])
    if session.verdicts:
        yield f"{counted(sum(session.verdicts.values()), 'cell')}: {counts}"
    if session.verdicts.keys() <= {Verdict.NOT_APPLICABLE, Verdict.REMOVED}:
        yield "nothing was tested: pytest's option -rs shows why, for each cell"
    if session.tier is not None:
        runs = counted(session.tier.of, "run")
        yield f"core: {session.tier.runs} of {runs}; --tier full runs all"


def _times(session: Session) -> Iterator[str]:
    """Yield how many contenders were timed, and on what the run spent its time, in seconds."""
    if session.timings:
        yield f"{session.timings} contenders of the time lane"
    total = functools.reduce(_add, session.spent, Spent())
    busy = total.probes + total.harness + total.starting + total.faults
    if busy:
        shares = {
            "in probes": total.probes,
            "of the harness's own": total.harness,
            "starting targets and clusters": total.starting,
            "in cases that crashed or hung": total.faults,
        }
        times = ", ".join(f"{one:.1f} s {what} ({one / busy:.1%})" for what, one in shares.items())
        yield f"{total.cells} cases on {total.clusters} clusters: {times}"


class _SessionHooks:
    """Hooks that pytest calls without its config; they hold the session instead."""

    def __init__(
        self,
        session: Session,
        lost: Lost | None = None,
        rerun: Rerun | None = None,
        resumed: ResumedCells | None = None,
        shares: Shares | None = None,
    ) -> None:
        self._session = session
        self._resumed = resumed
        self._shares = shares
        self._lost = lost or Lost(session)
        self._rerun = rerun

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._lost.reported(report)
        text = getattr(report, "conformance", None)
        if text is None:
            return
        if getattr(report, "outcome", None) == AGAIN and self._rerun is not None:
            self._rerun.hold(report)
            return
        self._session.take(report.nodeid, Outcome.parse(text))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config) -> None:
        replacing.watch(config, self._died_unknown)

    def _died_unknown(self, process: str, why: str) -> None:
        self._session.progress(f"test process {process} died while it started ({why})")
        if self._shares is not None:
            self._shares.give_back(process)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        chosen = self._session.options
        if self._shares is not None:
            hosts = self._shares.take(node.gateway.id)
            chosen = dataclasses.replace(chosen, hosts=hosts)
        node.workerinput["conformance"] = chosen.dump()
        if self._resumed is not None:
            node.workerinput[resumed_cells.FOLDER] = str(self._resumed.folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._lost.collected(ids)
        if self._resumed is not None:
            self._resumed.carry_of(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if self._shares is not None:
            self._shares.give_back(node.gateway.id)
        for one in json.loads(getattr(node, "workeroutput", {}).get("conformance", "[]")):
            self._session.spent.append(Spent(**one))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getoption("dist") != "load":
            return None  # the user asked for another way to distribute
        from harness.plugin.scheduler import ClusterScheduling

        scheduling = ClusterScheduling(config, log)
        scheduling.runs = self._session.catalogue.runs
        scheduling.waits = self._session.waits
        scheduling.looks_at_compiled = self._session.looks_at_compiled
        scheduling.judged = self._lost.judged
        scheduling.seconds = self._session.seconds
        return scheduling

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """Record a cell whose test process died as not run, unless another process runs it."""
        self._lost.died(crashitem)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Make sure that a completed run has a record of every cell."""
        if self._rerun is not None:
            self._rerun.give_up()
        if exitstatus in ENDED_OF_ITSELF and self._lost.take_never_begun():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        chosen = self._session.options
        if exitstatus == pytest.ExitCode.OK and chosen.fail_on_flaky and self._session.flaky:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _add(a: Spent, b: Spent) -> Spent:
    pairs = zip(dataclasses.astuple(a), dataclasses.astuple(b), strict=True)
    return Spent(*(x + y for x, y in pairs))
