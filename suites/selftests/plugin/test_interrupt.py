"""Interrupting pytest, or killing it, leaves no process and no lock behind."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from processes import (
    ENDS_S,
    FAULTS_ALONE,
    SUITE,
    before_its_end,
    gone,
    kill_at_once,
    marked,
    new_mark,
    running_pytest,
    until,
)

from conformance.worker.folders import OWNER
from harness.plugin import hooks
from harness.running.admission import Admission, process_capacity, start_capacity
from harness.running.fleet import LocalFleet

LOOKED_S = 1.0  # for what must not happen


@dataclass
class Suite:
    """A folder with a suite whose cells stall, and locks of its own."""

    folder: Path
    mark: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PMAP_CONFORMANCE_CACHE": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "temporary"),
        }

    def stalled(self, arguments: Sequence[str], fault: str = "stalls-in-collective") -> list[str]:
        """pytest's arguments; every cell stalls so, for an hour if it may."""
        options = ["-c", "/dev/null", "--rootdir", str(self.folder), "-p", "harness.plugin"]
        cells = ["-k", fault, "--implementation", "new_pmap", "--deadline", "3600"]
        cells += ["--tier", "full"]
        return [*options, *cells, *arguments, str(self.folder / "test_stalls.py")]

    def logs(self) -> list[Path]:
        """Output of the workers."""
        return self._files("cluster-*/process-*.log")

    def _files(self, pattern: str) -> list[Path]:
        """Return files of the run; unlike `Path.glob`, pass over folders that vanish meanwhile."""
        found = glob.glob(f"**/{pattern}", root_dir=self.folder / "temporary", recursive=True)
        return [self.folder / "temporary" / one for one in found]

    def up(self, workers: int) -> bool:
        """Return whether this many workers have printed what JAX prints when a collective
        begins.
        """
        return sum("Gloo" in log.read_text(errors="replace") for log in self.logs()) >= workers

    def a_job_is_up(self) -> bool:
        """Return whether both processes of a job that a probe started have printed it."""
        said = self._files("conformance-*/*.out")
        return sum("up" in one.read_text(errors="replace") for one in said) == 2

    def locks_are_free(self) -> bool:
        """Return whether all permits can be acquired at once."""
        folder = self.folder / "cache" / "admission"
        assert (folder / "process-0").exists(), "nobody ever asked for a permit here"
        with Admission(folder, "process", process_capacity()).acquire(process_capacity(), ENDS_S):
            Admission(folder, "start", start_capacity()).acquire(1, ENDS_S).release()
        return True


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE)
    (tmp_path / "test_stalls.py").write_text(SUITE)
    (tmp_path / "temporary").mkdir()
    return Suite(tmp_path, new_mark())


SERIAL = ("--topology", "2x2")
PARALLEL = ("-n", "2", "--topology", "2x1", "--topology", "2x2")


@pytest.mark.parametrize(
    ("arguments", "workers", "group"),
    [
        (SERIAL, 2, False),
        pytest.param(PARALLEL, 4, False, marks=pytest.mark.long),
        (PARALLEL, 4, True),
    ],
    ids=["serial", "parallel", "parallel-from-a-terminal"],
)
def test_an_interrupt_ends_everything(
    suite: Suite, arguments: tuple[str, ...], workers: int, group: bool
) -> None:
    with running_pytest(
        suite.stalled(arguments), suite.folder, suite.mark, suite.environment
    ) as run:
        assert before_its_end(run, lambda: suite.up(workers)), _told(suite)
        if group:  # as a terminal does at Ctrl-C
            os.killpg(run.pid, signal.SIGINT)
        else:
            run.send_signal(signal.SIGINT)
        assert run.wait(ENDS_S) == pytest.ExitCode.INTERRUPTED, _told(suite)
        assert gone(suite.mark, ENDS_S), _told(suite)
        assert suite.locks_are_free()
        assert not list(suite.folder.glob("temporary/conformance-*")), "files are left"


def test_an_interrupt_while_the_target_starts_ends_everything(suite: Suite) -> None:
    with running_pytest(suite.stalled(SERIAL), suite.folder, suite.mark, suite.environment) as run:
        assert before_its_end(run, lambda: _zygotes(suite.mark) > 0), _told(suite)
        run.send_signal(signal.SIGINT)
        assert run.wait(ENDS_S) == pytest.ExitCode.INTERRUPTED, _told(suite)
        assert gone(suite.mark, ENDS_S), _told(suite)


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [(SERIAL, 2), pytest.param(PARALLEL, 4, marks=pytest.mark.long)],
    ids=["serial", "parallel"],
)
def test_killing_pytest_leaves_no_process_and_no_lock(
    suite: Suite, arguments: tuple[str, ...], workers: int
) -> None:
    with running_pytest(
        suite.stalled(arguments), suite.folder, suite.mark, suite.environment
    ) as run:
        assert before_its_end(run, lambda: suite.up(workers)), _told(suite)
        assert len(marked(suite.mark)) >= 1 + 1 + workers
        run.kill()
        assert run.wait(ENDS_S) == -signal.SIGKILL
        assert gone(suite.mark, ENDS_S), _told(suite)
        assert suite.locks_are_free()


def test_a_stopped_zygote_ends_with_pytest_and_so_do_its_workers(suite: Suite) -> None:
    """Also one of a job that a probe started, which leads a session of its own."""
    stalled = suite.stalled(("--topology", "1x1"), "job-that-stalls")
    with running_pytest(stalled, suite.folder, suite.mark, suite.environment) as run:
        assert before_its_end(run, suite.a_job_is_up), _told(suite)
        (zygote,) = [one for one in marked(suite.mark) if _is_zygote(one)]
        zygote.suspend()
        assert until(lambda: zygote.status() == psutil.STATUS_STOPPED, ENDS_S)
        run.kill()
        assert run.wait(ENDS_S) == -signal.SIGKILL
        assert gone(suite.mark, ENDS_S), _told(suite)


def test_a_zygote_that_is_only_continued_goes_on(suite: Suite) -> None:
    with running_pytest(suite.stalled(SERIAL), suite.folder, suite.mark, suite.environment) as run:
        assert before_its_end(run, lambda: suite.up(2)), _told(suite)
        zygotes = [one for one in marked(suite.mark) if _is_zygote(one) and one.ppid() == run.pid]
        (zygote,) = zygotes
        before = len(marked(suite.mark))
        zygote.suspend()
        zygote.resume()
        assert not until(lambda: len(marked(suite.mark)) < before, LOOKED_S)


def _interrupted(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGINT)
    assert run.wait(ENDS_S) == pytest.ExitCode.INTERRUPTED


def _killed(run: subprocess.Popen[str]) -> None:
    run.kill()
    assert run.wait(ENDS_S) == -signal.SIGKILL


@pytest.mark.parametrize("ended", [_interrupted, _killed], ids=["interrupted", "killed"])
def test_the_processes_of_a_job_end_with_the_run_also_a_stopped_one(
    suite: Suite, ended: Callable[[subprocess.Popen[str]], None]
) -> None:
    stalled = suite.stalled(("--topology", "1x1"), "job-that-stalls")
    with running_pytest(stalled, suite.folder, suite.mark, suite.environment) as run:
        assert before_its_end(run, suite.a_job_is_up), _told(suite)
        ended(run)
        assert gone(suite.mark, ENDS_S), _told(suite)
    left = suite.folder.glob("temporary/conformance-*")
    # Who is killed leaves the run's own folder to the next run's sweep, and nothing else.
    assert not [one for one in left if ended is _interrupted or not one.match("conformance-run-*")]


@pytest.mark.parametrize(
    ("arguments", "workers"), [(SERIAL, 2), pytest.param(PARALLEL, 4, marks=pytest.mark.long)]
)
def test_the_next_run_removes_what_a_run_leaves_that_was_killed_with_all_it_started(
    suite: Suite, arguments: tuple[str, ...], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(suite.folder / "temporary"))
    stalled = suite.stalled(arguments)
    with running_pytest(stalled, suite.folder, suite.mark, suite.environment) as run:
        assert before_its_end(run, lambda: suite.up(workers)), _told(suite)
        # Who is killed between making a folder and owning it leaves it for good.
        assert before_its_end(run, lambda: all((one / OWNER).exists() for one in _folders(suite)))
        before = _folders(suite)
        LocalFleet(()).close()
        assert before <= _folders(suite), "folders of a run that lives"
        kill_at_once(suite.mark)
        run.wait(ENDS_S)
    kinds = {one.name.split("-")[1] for one in _folders(suite)}
    assert kinds == {"run", "jobs"}, "nothing is left that could be removed"

    def next_run_removes_them() -> bool:
        LocalFleet(()).close()
        return not _folders(suite)

    # A killed process takes a moment to end, the longer the more memory it has.
    assert until(next_run_removes_them, ENDS_S), _folders(suite)


def _folders(suite: Suite) -> set[Path]:
    return set(suite.folder.glob("temporary/conformance-*"))


def _zygotes(mark: str) -> int:
    return sum(map(_is_zygote, marked(mark)))


def _is_zygote(process: psutil.Process) -> bool:
    """Return whether the process is a zygote, not a worker that was forked from one."""
    try:
        parent = process.parent()
        forked = parent is not None and _runs_zygote(parent)
        return _runs_zygote(process) and not forked
    except psutil.Error:
        return False


def _runs_zygote(process: psutil.Process) -> bool:
    return "conformance.worker.zygote" in process.cmdline()


def _told(suite: Suite) -> str:
    return (suite.folder / "pytest.log").read_text()


def test_an_interrupt_at_an_instruction_without_a_line_can_be_shown() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted.__code__ = interrupted.__code__.replace(co_linetable=b"")
    with pytest.raises(KeyboardInterrupt) as without_line:
        interrupted()
    with pytest.raises(TypeError):
        without_line.getrepr(funcargs=True)

    loop = hooks.pytest_runtestloop()
    next(loop)
    with pytest.raises(KeyboardInterrupt) as shown:
        loop.throw(without_line.value)
    assert "KeyboardInterrupt" in str(shown.getrepr(funcargs=True))
