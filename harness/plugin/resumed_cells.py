"""Carry resumed cells into the results: which of them pytest collected, and where they are
reported.

Resumed cells are left out of the collection of every test process, and all must agree; so the
controller lists them in a file, and learns which were collected from the first process that did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.commandline.counting import counted
from conformance.worker.folders import Scratch
from harness.plugin.resume import today
from harness.plugin.session import Session, cell_of
from harness.results.gathering import Gathered, gather
from harness.results.recorder import Recorder

LISTED = "resumed"  # the file of the ids that need not be run, a line each
FOLDER = "conformance_resumed"  # of a test process's input: the folder where it lies


class ResumedCells:
    """The controller's side: the resumed cells, and their way into the results."""

    def __init__(self, resumed: Gathered, session: Session, recorder: Recorder) -> None:
        self._resumed = resumed
        self._session = session
        self._recorder = recorder
        self._scratch = Scratch("resumed")
        self.folder = self._scratch.folder
        self.cells = {str(key.id): key for key in resumed.kept}
        self.carried = 0
        self._done = False
        listed = "".join(f"{id}\n" for id in self.cells)
        (self.folder / LISTED).write_text(listed, encoding="utf-8")

    def carry(self, collected: Iterable[str]) -> None:
        """Write the cells that were collected, once, and count them as this run's."""
        if self._done:
            return
        self._done = True
        chosen = [self.cells[id] for id in collected]
        for target, record in self._resumed.records(chosen):
            self._recorder.carried(target, record)
            self._session.count(record)
            self.carried += 1

    def carry_of(self, process: str) -> None:
        """Write the cells that a test process collected."""
        file = self.folder / process
        if file.is_file():
            self.carry(file.read_text(encoding="utf-8").splitlines())

    def summary_lines(self) -> list[str]:
        """Return the summary's lines about resumed cells."""
        why: Counter[str] = self._resumed.why
        cells = counted(self.carried, "cell")
        lines = [f"{cells} resumed, recorded by an earlier run and judged anew"]
        if why:
            reasons = ", ".join(f"{count} {reason}" for reason, count in why.most_common())
            some = counted(why.total(), "recorded cell was", "recorded cells were")
            lines.append(f"{some} not resumed: {reasons}")
        return lines

    def close(self) -> None:
        """Remove the temporary folder of the resumed cells."""
        self._scratch.close()


def check(config: pytest.Config) -> None:
    """Check the options before anything is written; ValueError or OSError if they cannot work."""
    results = config.getoption("results")
    for one in config.getoption("resume"):
        if not results:
            raise ValueError("--resume carries results over: name the new file with --results FILE")
        if config.getoption("isolated") or config.getoption("repeat") > 1:
            raise ValueError(
                "--resume with --isolated or --repeat: recorded cells did not run in that way; "
                "leave out one of them"
            )
        if Path(one).resolve() == Path(results).resolve():
            raise ValueError(
                f"--resume {one} --results {results}: it would be overwritten before it is "
                "read; name another file for the results"
            )
        Path(one).open("rb").close()
    if results and results.endswith(".xz"):
        raise ValueError(
            f"--results {results}: a run writes line by line; name a .jsonl, and compress it "
            "afterwards: pmap-conformance results merge FILE -o FILE.xz"
        )


def record(config: pytest.Config, session: Session) -> None:
    """Open the results file, if one is named; ValueError or OSError if it cannot be written."""
    if config.getoption("results"):
        session.recorder = Recorder(
            Path(config.getoption("results")),
            session.options.run,
            session.catalogue,
            session.claims,
            session.tier,
            keep=not config.getoption("overwrite"),
        )


def results(config: pytest.Config, recorder: Recorder) -> str:
    """Describe where the results are, and where the file's earlier content is."""
    before = f"; what it held before: {recorder.kept}" if recorder.kept else ""
    return f"results: {config.getoption('results')}{before}"


def begin(config: pytest.Config, session: Session) -> ResumedCells | None:
    """Return what the options resume; None if nothing."""
    files = [Path(one) for one in config.getoption("resume")]
    if not files or session.recorder is None:
        return None
    session.progress(f"reading earlier results: {', '.join(map(str, files))}")
    try:
        found = gather(files, today(session, session.recorder.programs), session.progress)
    except BaseException:
        session.recorder.close()
        raise
    return ResumedCells(found, session, session.recorder)


def leave_out(config: pytest.Config, items: list[pytest.Item], cells: ResumedCells | None) -> None:
    """Remove resumed cells from a collection, and report or write down which they were."""
    process: dict[str, Any] = getattr(config, "workerinput", {})
    folder = Path(process[FOLDER]) if FOLDER in process else None
    if cells is not None:
        resumed = frozenset(cells.cells)
    elif folder is not None:
        resumed = frozenset((folder / LISTED).read_text(encoding="utf-8").splitlines())
    else:
        return
    left_out = [item for item in items if str(cell_of(item)) in resumed]
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=left_out)
    ids: Sequence[str] = [str(cell_of(item)) for item in left_out]
    if cells is not None:
        cells.carry(ids)
    elif folder is not None:
        text = "".join(f"{id}\n" for id in ids)
        (folder / process["workerid"]).write_text(text, encoding="utf-8")
