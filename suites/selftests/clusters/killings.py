"""Kills processes of pytest runs at random moments, and tells what came of each run.

`python suites/selftests/clusters/killings.py 40` prints a row for each run; each run is also the
one that must start at once after the one before. Only what a run started is ever killed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "building"))

from processes import FAULTS_ALONE, SUITE, gone, marked, new_mark, running_pytest

from harness.running.admission import Admission, process_capacity, start_capacity

WORKER, ZYGOTE, TEST_PROCESS, CONTROLLER = "worker", "zygote", "test process", "controller"
# Of every ten; a controller is the last of its run.
VICTIMS = (*[WORKER] * 4, *[ZYGOTE] * 3, *[TEST_PROCESS] * 2, CONTROLLER)
MOST_IN_A_RUN = 6  # xdist replaces a test process only so often

CLAUSES = ("none", "wrong-value", "raises")
TOPOLOGIES = ("1x1", "2x1", "1x2", "3x1", "2x2", "1x3", "4x1", "1x4")
PAUSE_S = (0.5, 6.0)  # between two killings
RUN_S = 900.0
GONE_S = 60.0
LOCKS_S = 5.0

Verdicts = Mapping[tuple[str, str, str], tuple[str, str]]


@dataclass
class Run:
    """The result of one run: its killed processes in order, and the cells that differ from an
    undisturbed run.
    """

    killed: list[str] = field(default_factory=list)
    affected: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    recorded: int = 0
    twice: int = 0
    status: int | None = None
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(self.killed).items())
        seen = Counter(verdict for verdict, _ in self.affected.values())
        told = ", ".join(f"{n} {verdict}" for verdict, n in seen.items())
        records = f"{self.recorded} records, {self.twice} of a cell that has one"
        left = f"left: {', '.join(self.left) or 'nothing'}"
        parts = (kinds or "nothing", told or "no cell", records, f"exit {self.status}", left)
        return " | ".join((*parts, f"{self.seconds:.0f} s"))

    def faults(self) -> list[str]:
        """Return what is wrong with the run."""
        found = list(self.left)
        if self.twice:
            found.append(f"{self.twice} cells have two records")
        if len(self.affected) > len(self.killed):
            found.append(f"{len(self.affected)} cells affected by {len(self.killed)} killings")
        untold = [cell for cell, (_, why) in self.affected.items() if not why]
        return found + [f"{cell}: no reason is told" for cell in untold]


def campaign(folder: Path, killings: int, seed: int) -> Iterator[Run]:
    """First an undisturbed run, then as many as it takes to kill so many processes."""
    (folder / "conftest.py").write_text(FAULTS_ALONE)
    (folder / "test_cells.py").write_text(SUITE)
    (folder / "temporary").mkdir()
    chance = random.Random(seed)
    usual = _run(folder, [], {}, chance)
    yield usual[0]
    left = [chance.choice(VICTIMS) if n >= len(VICTIMS) else VICTIMS[n] for n in range(killings)]
    chance.shuffle(left)
    while left:
        count = left.index(CONTROLLER) + 1 if CONTROLLER in left else len(left)
        planned = left[: min(count, MOST_IN_A_RUN)]
        run, _ = _run(folder, planned, usual[1], chance)
        left = left[max(1, len(run.killed)) :]
        yield run


def _run(
    folder: Path, planned: list[str], usual: Verdicts, chance: random.Random
) -> tuple[Run, Verdicts]:
    mark, results, run = new_mark(), folder / f"{time.time_ns()}.jsonl", Run()
    words = ["-c", "/dev/null", "--rootdir", str(folder), "-p", "harness.plugin", "-n", "2"]
    words += [w for one in TOPOLOGIES for w in ("--topology", one)]
    words += [w for one in CLAUSES for w in ("--clause", f"faults.{one}")]
    words += ["--implementation", "new_pmap"]
    words += ["--results", str(results), str(folder / "test_cells.py")]
    variables = {
        "PMAP_CONFORMANCE_CACHE": str(folder / "cache"),
        "TMPDIR": str(folder / "temporary"),
    }
    began = time.monotonic()
    with running_pytest(words, folder, mark, variables) as pytest:
        for kind in planned:
            until = time.monotonic() + chance.uniform(*PAUSE_S)
            while pytest.poll() is None:
                some = [p for p in marked(mark) if _kind(p, pytest.pid) == kind]
                if some and time.monotonic() > until:
                    with suppress(psutil.NoSuchProcess):
                        chance.choice(some).kill()
                        run.killed.append(kind)
                    break
                time.sleep(0.05)
        run.status = pytest.wait(RUN_S)
        if not gone(mark, GONE_S):
            run.left += [f"{_kind(p, pytest.pid)} {p.pid}" for p in marked(mark)]
    run.seconds = time.monotonic() - began
    if CONTROLLER not in run.killed:  # a controller's files go with the next run that ends
        run.left += [str(p.name) for p in (folder / "temporary").glob("conformance-*")]
    run.left += _locks(folder / "cache" / "admission")
    seen = _verdicts(results, run)
    run.affected = {
        cell: told for cell, told in seen.items() if told[0] != usual.get(cell, told)[0]
    }
    missing = set() if CONTROLLER in run.killed else usual.keys() - seen.keys()
    run.left += [f"{len(missing)} cells without a record"] if missing else []
    return run, seen


def _verdicts(results: Path, run: Run) -> Verdicts:
    """Each cell's verdict and why; a run that was killed may end in half a line."""
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    lines = results.read_text().split("\n")[:-1] if results.exists() else []
    for cell in (one for one in map(json.loads, lines) if one["kind"] == "cell"):
        key = (cell["clause"], cell["implementation"], cell["topology"])
        run.twice += key in found
        run.recorded += 1
        found[key] = (cell["verdict"], cell["reason"])
    return found


def _kind(process: psutil.Process, controller: int) -> str:
    """Return a process's role in a run, from its own and its parent's command line."""
    with suppress(psutil.Error):
        if process.pid == controller:
            return CONTROLLER
        words, parent = process.cmdline(), process.parent()
        above = parent.cmdline() if parent is not None else []
        if "conformance.worker.zygote" in words:
            return WORKER if "conformance.worker.zygote" in above else ZYGOTE
        # As execnet starts them; what else it asks of a Python is no test process.
        if parent is not None and parent.pid == controller and "-u" in words[:2]:
            return TEST_PROCESS
    return "other"


def _locks(folder: Path) -> list[str]:
    """The kinds of permits that cannot all be had."""
    held = []
    for kind, capacity in (("process", process_capacity()), ("start", start_capacity())):
        try:
            Admission(folder, kind, capacity).acquire(capacity, LOCKS_S).release()
        except Exception as error:
            held.append(f"the {kind} permits: {error}")
    return held


def main() -> int:
    """So many killings, and a seed; 1 where anything was not as it should be."""
    killings = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**31)
    print(f"seed {seed}", flush=True)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="killings-") as name:
        for run in campaign(Path(name), killings, seed):
            print(run, *(f"   WRONG: {one}" for one in run.faults()), sep="\n", flush=True)
            for cell, (verdict, reason) in run.affected.items():
                print("   ", *cell, verdict, reason[:150].replace("\n", " "), flush=True)
            bad += bool(run.faults())
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
