"""Programs with the findings that they expect, and scans of them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.catalogue.causes import load_causes
from conformance.scanning.files import listed
from conformance.scanning.findings import Change, Report
from conformance.scanning.removed import with_removed
from conformance.scanning.rules import Rules, Side, changes, most_severe, rules
from conformance.scanning.scan import scan
from harness.commandline.scan import removed
from reports.analysis.effects.published import load_changes

FOLDER = Path(__file__).parents[1] / "scanning" / "programs"
# Written, with what is to be found in each, before any scan of them.
HELD_OUT = Path(__file__).parents[1] / "scanning" / "held_out"
# Two more parts, in which a folder or a notebook is a program too: the rules were corrected by the
# first of them, and the second was measured once after that.
HELD_OUT_2, HELD_OUT_3 = (HELD_OUT.with_name(f"held_out_{number}") for number in (2, 3))
OLD_2, NEW_2 = "legacy_pmap@0.9.2", "new_pmap@0.12.0.1"
OLD, NEW = "legacy_pmap@0.7.2", "new_pmap@0.12.0.1"  # of a program that does not say
_SIDES = re.compile(r"# from (\S+) to ([^\s,]+)(, unchanged)?")
_FINDS = re.compile(r"finds: ([\w-]+)")
_FINDS_NEXT = re.compile(r"finds-next: ([\w-]+)")  # where a line cannot have a comment


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the corpus: its file, between which sides, and which issue at which line."""

    file: Path
    old: str
    new: str
    expected: frozenset[tuple[int, str]]
    unchanged: bool = False


@functools.cache
def programs(folder: Path = FOLDER) -> tuple[Program, ...]:
    """Every program of a part of the corpus."""
    return tuple(map(_program, sorted(one for one in folder.iterdir() if one.is_file())))


def _program(file: Path) -> Program:
    lines = file.read_text(encoding="utf-8").split("\n")
    sides = _SIDES.match(lines[0])
    old, new = (sides[1], sides[2]) if sides else (OLD, NEW)
    expected = {
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if (match := _FINDS.search(line)) is not None
    }
    unchanged = sides is not None and sides[3] is not None
    return Program(file, old, new, frozenset(expected), unchanged)


def published(old: str, new: str) -> Mapping[str, Change]:
    """Return the changes in the published results, by known issue."""
    found: dict[str, list[Change]] = {}
    for one in load_changes(old, new):
        change = Change(one.severity, (one.severity,), one.processes, one.refused)
        found.setdefault(one.cause, []).append(change)
    return {slug: most_severe(some) for slug, some in found.items()}


@functools.cache
def rules_between(old: str, new: str, *, unchanged: bool = False) -> Rules:
    """The rules of a scan from one side to another."""
    sides = Side(*old.split("@")), Side(*new.split("@"))
    causes = load_causes()
    some = changes(causes, published(old, new), *sides, unchanged=unchanged)
    with_names = with_removed(some, causes.values(), removed(*sides))
    return rules(with_names, *sides, unchanged=unchanged)


def report_of(
    *paths: Path, old: str = OLD, new: str = NEW, unchanged: bool = False, jobs: int = 1
) -> Report:
    """The report of a scan of some paths."""
    files, left = listed(paths)
    some = rules_between(old, new, unchanged=unchanged)
    return scan(files, some, old=old, new=new, left=left, processes=jobs)


Place = tuple[str, int | str]  # a file's name, and a line's number or, in a notebook, its text


@dataclass(frozen=True, slots=True)
class Measured:
    """What a scan found of a part of the corpus: places with an issue, and lines without one."""

    expected: int
    missed: tuple[str, ...]
    false: tuple[str, ...]

    @property
    def found(self) -> int:
        return self.expected - len(self.missed)


def measured(folder: Path, old: str = OLD_2, new: str = NEW_2) -> Measured:
    """Scan each program of a part of the corpus by itself, a folder as one program."""
    expected, missed, false = 0, list[str](), list[str]()
    for program in sorted(folder.iterdir()):
        files = [one for one in sorted([program, *program.rglob("*")]) if one.is_file()]
        places = {place: slug for one in files for place, slug in _listed(one)}
        found: dict[Place, set[str]] = {}
        for one in report_of(program, old=old, new=new).findings:
            name = Path(one.path).name
            line = one.line_text.strip() if name.endswith(".ipynb") else one.place.line
            slugs = {issue.slug for issue in (one.issue, *one.also)}
            found.setdefault((name, line), set()).update(slugs)
        expected += len(places)
        missed += [f"{at}: {slug}" for at, slug in places.items() if slug not in found.get(at, ())]
        false += [f"{at}: {sorted(slugs)}" for at, slugs in found.items() if at not in places]
    return Measured(expected, tuple(missed), tuple(false))


def _listed(file: Path) -> Iterator[tuple[Place, str]]:
    """Yield the places of a file that a scan is to find."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
        text = "\n".join(sources)
    for number, line in enumerate(text.split("\n"), 1):
        if match := _FINDS.search(line):
            yield (file.name, line.strip() if file.suffix == ".ipynb" else number), match[1]
        if match := _FINDS_NEXT.search(line):
            yield (file.name, number + 1), match[1]


def found_in(report: Report) -> set[tuple[int, str]]:
    """The lines of findings with each issue that is named there."""
    return {
        (one.place.line, issue.slug) for one in report.findings for issue in (one.issue, *one.also)
    }
