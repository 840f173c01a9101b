"""Programs with the findings that they expect, and scans of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.catalogue.causes import load_causes
from conformance.scanning.files import listed
from conformance.scanning.findings import Change, Report
from conformance.scanning.removed import with_removed
from conformance.scanning.rules import Rules, Side, changes, gravest, rules
from conformance.scanning.scan import scan
from harness.commandline.scan import removed
from reports.analysis.effects.published import load_changes

FOLDER = Path(__file__).parents[1] / "scanning" / "programs"
# Written, with what is to be found in each, before any scan of them.
HELD_OUT = Path(__file__).parents[1] / "scanning" / "held_out"
OLD, NEW = "legacy_pmap@0.7.2", "new_pmap@0.12.0.1"  # of a program that does not say
_SIDES = re.compile(r"# from (\S+) to ([^\s,]+)(, unchanged)?")
_FINDS = re.compile(r"finds: ([\w-]+)")


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
    return {slug: gravest(some) for slug, some in found.items()}


@functools.cache
def rules_between(old: str, new: str, *, unchanged: bool = False) -> Rules:
    """The rules of a scan from one side to another."""
    sides = Side(*old.split("@")), Side(*new.split("@"))
    causes = load_causes()
    some = changes(causes, published(old, new), *sides, unchanged=unchanged)
    return rules(with_removed(some, causes.values(), removed(*sides)), *sides)


def report_of(
    *paths: Path, old: str = OLD, new: str = NEW, unchanged: bool = False, jobs: int = 1
) -> Report:
    """The report of a scan of some paths."""
    files, left = listed(paths)
    some = rules_between(old, new, unchanged=unchanged)
    return scan(files, some, old=old, new=new, left=left, processes=jobs)


def found_in(report: Report) -> set[tuple[int, str]]:
    """The lines of findings with each issue that is named there."""
    return {
        (one.place.line, issue.slug) for one in report.findings for issue in (one.issue, *one.also)
    }
