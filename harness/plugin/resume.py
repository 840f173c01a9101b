"""`--resume`: what an earlier run recorded of the same program on the same target is not run again.

Recorded observations are judged anew, so that today's catalogue decides of them as it does of new
ones, and what it would call red is run. Only the controller reads the files, once and line by
line; what is kept of a run of a hundred thousand cells lies in a scratch file, not in memory.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from conformance.catalogue import names
from conformance.commands.recorded import ResultsError, lines
from conformance.judging.rejudging import CannotJudge, Record, Rejudging, program_digest
from harness.plugin.session import Session
from harness.running.cells import CellId
from harness.targets.interpreters import NoAnswerError, facts
from harness.targets.target import Target, TargetError

CELLS_BETWEEN_PROGRESS = 10_000

# What may stand in new results as it was recorded; all else is worth another run.
GOOD = (names.CONFORMS, names.KNOWN_DEVIATION, names.REMOVED, names.NOT_APPLICABLE)

BACKENDS = {"cuda": "gpu"}  # what JAX calls a platform that runs, where it is another word
OF_A_TARGET = ("jax", "jaxlib", "python", "platform")


class RunAgain(Exception):
    """A recorded cell that must be run; the message says why, in few words, to be counted by."""


@dataclass(frozen=True, slots=True)
class Today:
    """What this run would run: its cells, their programs' digests, its targets, its judge.

    `targets` are by spec what a target's record would say: jax, jaxlib, python, platform, packages.
    `requires` are by clause the packages that it needs.
    """

    cells: frozenset[CellId]
    programs: Mapping[str, str]
    targets: Mapping[str, Record]
    requires: Mapping[str, Sequence[str]]
    judge: Rejudging

    def resumed(self, cell: Record, target: Record, program: str) -> dict[str, Any]:
        """The record of a cell as it stands in this run's results; RunAgain says why it cannot."""
        if cell["verdict"] == names.NOT_RUN:
            raise RunAgain("not run then")
        if cell["verdict"] == names.FLAKY:
            raise RunAgain("flaky then")
        if program != self.programs[cell["clause"]]:
            raise RunAgain("of another program")
        self._same_target(cell["clause"], target)
        try:
            record = self.judge(cell, target)
        except CannotJudge as error:
            raise RunAgain(str(error)) from error
        if record["verdict"] not in GOOD:
            raise RunAgain(f"{record['verdict']} by today's catalogue")
        return {**record, "program": program, "resumed": cell.get("resumed") or target["run"]}

    def _same_target(self, clause: str, then: Record) -> None:
        now = self.targets[then["target"]]
        for key in OF_A_TARGET:
            if _as_far_as_counts(key, then[key]) != _as_far_as_counts(key, now[key]):
                raise RunAgain(f"of another {key}")
        for package in self.requires.get(clause, ()):
            if then.get("packages", {}).get(package) != now["packages"].get(package):
                raise RunAgain(f"of another {package}")


@dataclass(slots=True)
class _Known:
    """The newest record of a cell: where its line lies in the scratch file, or why it is not."""

    started: str
    header: tuple[str, str, str]
    place: tuple[int, int] | None = None
    why: str = ""


@dataclass
class Resumed:
    """The cells that need not be run; `why` counts the recorded ones that are, by the reason."""

    _scratch: IO[bytes]
    _headers: dict[tuple[str, str, str], Record] = field(default_factory=dict)
    _known: dict[CellId, _Known] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def cells(self) -> dict[str, CellId]:
        """By the text that is their pytest parameter."""
        return {str(id): id for id, one in self._known.items() if one.place is not None}

    @property
    def why(self) -> Counter[str]:
        """Why recorded cells that were asked for are run again, and how many are by each reason."""
        return Counter(one.why for one in self._known.values() if one.place is None)

    def records(self, cells: Iterable[CellId]) -> Iterable[tuple[Record, Record]]:
        """The header of its target and the record of each, those of one header together."""
        chosen = [(one.header, one.place) for id in cells if (one := self._known[id]).place]
        for header, place in sorted(chosen):
            assert place is not None
            self._scratch.seek(place[0])
            yield self._headers[header], json.loads(self._scratch.read(place[1]))

    def add(self, id: CellId, known: _Known, record: Record | None) -> None:
        """Keep a cell's newest record. What was not run says nothing against what was."""
        before = self._known.get(id)
        if before is not None and before.why != "not run then" and known.why == "not run then":
            return
        if record is not None:
            line = json.dumps(record).encode()
            known.place = (self._scratch.seek(0, 2), len(line))
            self._scratch.write(line)
        self._known[id] = known

    def newest(self, id: CellId, started: str) -> bool:
        """Whether a record of that time is newer than what is known of a cell."""
        before = self._known.get(id)
        return before is None or before.why == "not run then" or started >= before.started

    def header(self, target: Record) -> tuple[str, str, str]:
        """What tells a target's record among those that are kept."""
        key = (target["target"], target["started"], target["run"])
        self._headers[key] = target
        return key


def today(session: Session, programs: Mapping[str, str]) -> Today:
    """What the options of a run choose, of the targets that it has."""
    clauses = session.catalogue.clauses
    had = {one.spec: one.target for one in session.options.targets if one.target is not None}
    cells = (id for section in session.catalogue.sections() for id in session.cells(section))
    requires = {id: one.requires for id, one in clauses.items() if one.requires}
    packages = {name for some in requires.values() for name in some}
    platform = BACKENDS.get(session.options.platform, session.options.platform)
    return Today(
        frozenset(id for id in cells if id.target in had),
        programs,
        {spec: _facts(one, packages) | {"platform": platform} for spec, one in had.items()},
        requires,
        Rejudging(clauses, session.deviations),
    )


def _facts(target: Target, packages: Iterable[str]) -> dict[str, Any]:
    """What a target's record will say, from the metadata of what is installed."""
    try:
        known = facts(target.python, ["jax", "jaxlib", *packages])
    except NoAnswerError as error:
        raise TargetError(
            f"Target {target.spec} no longer runs: {target.python}: {error}. Provision it again."
        ) from error
    versions = dict(known.packages)
    return {
        "jax": versions.pop("jax", None),
        "jaxlib": versions.pop("jaxlib", None),
        "python": known.python,
        "packages": versions,
    }


def resume(files: Sequence[Path], today: Today, progress: Callable[[str], None]) -> Resumed:
    """What `files` record of the cells of today. ResultsError names a line that is no record."""
    found = Resumed(tempfile.TemporaryFile())  # noqa: SIM115 (it lives as long as the run)
    for file in files:
        _read(file, today, found, progress)
    return found


def _read(file: Path, today: Today, found: Resumed, progress: Callable[[str], None]) -> None:
    targets: dict[str, Record] = {}
    programs: dict[str, str] = {}
    seen = 0
    for number, line in lines(file):
        try:
            record = json.loads(line)
            match record["kind"]:
                case "target":
                    targets[record["target"]] = record
                case "clause":
                    digest = program_digest(record["source"], record.get("parameters", {}))
                    programs[record["clause"]] = digest
                case "cell":
                    seen += 1
                    if seen % CELLS_BETWEEN_PROGRESS == 0:
                        progress(f"{file}: {seen} cells read")
                    _cell(record, targets[record["target"]], programs, today, found)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ResultsError(f"{file}:{number}: no record of a results file: {error}") from error
    progress(f"{file}: {seen} cells read")


def _cell(
    cell: Record, target: Record, programs: Mapping[str, str], today: Today, found: Resumed
) -> None:
    id = CellId(cell["clause"], cell["implementation"], cell["topology"], cell["target"])
    if id not in today.cells or not found.newest(id, target["started"]):
        return
    header = found.header(target)
    try:
        program = cell.get("program") or programs[cell["clause"]]
        record = today.resumed(cell, target, program)
    except RunAgain as error:
        found.add(id, _Known(target["started"], header, why=str(error)), None)
    else:
        found.add(id, _Known(target["started"], header), record)


def _as_far_as_counts(key: str, value: str | None) -> str | None:
    """Python 3.11.4 and 3.11.9 are one to JAX."""
    if key == "python" and value is not None:
        return ".".join(value.split(".")[:2])
    return value
