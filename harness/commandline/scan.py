"""`scan`: find the known issues that concern a code base, without running it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.commandline.ending import PROGRAM
from conformance.commandline.limits import whole
from harness.commandline import options
from harness.commandline.command import DONE, FOUND, Action, UsageError, report_progress

if TYPE_CHECKING:
    from conformance.catalogue.causes import Cause
    from conformance.scanning.configuration import Configuration
    from conformance.scanning.findings import Change, Finding, Report
    from conformance.scanning.removed import Removed
    from conformance.scanning.rules import Side

SARIF = "sarif"
FINDING = "finding"  # of --fail-on: any at all
MOST_JOBS = 256
MOST_ROUNDS = 5  # of --fix: what is within what was fixed is fixed by the next
EXAMPLE = f"""example:
  {PROGRAM} scan src/ --from 0.8.3 --to 0.12.0.1
  {PROGRAM} scan src/ --from 0.7.2 --to shard_map@0.12.0.1 --fix
"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Find the known issues that concern a code base: Python files, scripts, configuration and "
        "requirements files. Nothing of it is imported or run."
    )
    parser.epilog = f"{EXAMPLE}\n{parser.epilog}"
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="files or folders")
    for option, what in (("--from", "what the code runs on now"), ("--to", "what it is to run on")):
        parser.add_argument(
            option,
            dest=f"{option.strip('-')}_side",
            metavar=options.DEFAULT_SIDE,
            help=f"{what}, as in 0.12.0.1 or shard_map@0.12.0.1 ({options.OF_DEFAULT}; default: as "
            "pyproject.toml says)",
        )
    options.add_format(parser, options.TEXT, options.JSON, options.MARKDOWN, SARIF)
    options.add_output(parser, "write the report there (default: standard output)")
    parser.add_argument(
        "--fail-on",
        metavar="SEVERITY",
        help="exit 1 if a finding is as severe: crash, hang, wrong values, error, other error, "
        "extra communication, extra memory, slower calls, different sharding, warning; "
        f"{FINDING} (any finding; the default) or {options.NONE}",
    )
    parser.add_argument(
        "--unchanged",
        action="store_true",
        help="also report known issues that both sides have",
    )
    parser.add_argument(
        "--processes",
        choices=("one", "several", "any"),
        default="any",
        help="leave out what shows only with another number of processes (default: any)",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="ISSUE",
        help="leave out a known issue, by its id; repeatable",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave out files, as in 'tests/*'; repeatable",
    )
    parser.add_argument(
        "--diff", action="store_true", help="print what --fix would change, and change nothing"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="print and apply the rewritings that a clause proves equal",
    )
    parser.add_argument(
        "--jobs", type=whole(1, MOST_JOBS), default=os.cpu_count() or 1, metavar="N"
    )


def _scan(chosen: argparse.Namespace) -> int:
    from conformance.scanning.configuration import find_configuration

    if chosen.fix and chosen.diff:
        raise UsageError("--diff changes nothing and --fix writes: give one of them")
    first: Path = chosen.paths[0]
    configuration = find_configuration(first if first.is_dir() else first.parent)
    old, new = _sides(chosen, configuration)
    severity = _severity(chosen.fail_on or configuration.fail_on or FINDING)
    issues = _issues(chosen, configuration, old, new)
    if chosen.fix or chosen.diff:
        return _fix(chosen, configuration, issues, old, new)
    report = _report(chosen, configuration, issues, old, new)
    _write(chosen, report)
    return FOUND if severity is not None and report.at_least(severity) else DONE


def _sides(chosen: argparse.Namespace, configuration: Configuration) -> tuple[Side, Side]:
    from conformance.scanning.rules import Side

    found = []
    for option, text in (
        ("--from", chosen.from_side or configuration.old),
        ("--to", chosen.to_side or configuration.new),
    ):
        if not text:
            raise UsageError(
                f"{option}: name the version, as in {option} 0.9.0, or set it in "
                f"[tool.{PROGRAM}] of pyproject.toml"
            )
        found.append(Side(*options.parse_side(options.whole_side(text), option)))
    return found[0], found[1]


def _severity(text: str) -> str | None:
    """Return the severity from which on the command fails; None if it never does."""
    from conformance.catalogue.finds import SEVERITIES
    from conformance.scanning.findings import UNCHANGED

    if text == options.NONE:
        return None
    if text == FINDING:
        return UNCHANGED
    if text not in SEVERITIES:
        known = ", ".join((*SEVERITIES, FINDING, options.NONE))
        raise UsageError(f"--fail-on {text}: there are {known}")
    return text


def _issues(
    chosen: argparse.Namespace, configuration: Configuration, old: Side, new: Side
) -> list[tuple[Cause, Change]]:
    """Return the known issues that change something, each with its change."""
    from conformance.catalogue.causes import load_causes
    from conformance.catalogue.spelling import did_you_mean
    from conformance.scanning import rules
    from conformance.scanning.removed import with_removed

    causes = load_causes()
    ignored = {*chosen.ignore, *configuration.ignore}
    for slug in sorted(ignored - {*causes}):
        meant = did_you_mean(slug, causes) or f"; `{PROGRAM} causes list` lists them"
        raise UsageError(f"--ignore {slug}: there is no known issue of that name{meant}")
    published = _published(old, new)
    changed = rules.changes(causes, published, old, new, unchanged=chosen.unchanged)
    found = with_removed(changed, causes.values(), removed(old, new))
    return [
        (cause, change)
        for cause, change in found
        if cause.slug not in ignored
        and (
            chosen.processes == "any"
            or not change.processes
            or chosen.processes in change.processes
        )
    ]


def _published(old: Side, new: Side) -> Mapping[str, Change]:
    """Return the changes between two sides in the published matrix, by known issue."""
    from conformance.scanning.findings import Change
    from conformance.scanning.rules import most_severe
    from reports.analysis.effects.published import load_changes

    found: dict[str, list[Change]] = {}
    for one in load_changes(str(old), str(new)):
        change = Change(one.severity, (one.severity,), one.processes, one.refused)
        found.setdefault(one.cause, []).append(change)
    return {slug: most_severe(some) for slug, some in found.items()}


def removed(old: Side, new: Side) -> Iterator[Removed]:
    """Yield the names that go away between two releases, other than options."""
    from conformance.scanning.removed import Removed
    from reports.analysis.public_names import ARGUMENT, MODULE, NAME, load_names

    for one in load_names().gone_between(old.jax, new.jax):
        if one.kind in (MODULE, NAME, ARGUMENT):
            yield Removed(one.name, one.owner, one.gone, one.instead)


def _report(
    chosen: argparse.Namespace,
    configuration: Configuration,
    issues: list[tuple[Cause, Change]],
    old: Side,
    new: Side,
) -> Report:
    from conformance.scanning.files import listed
    from conformance.scanning.rules import rules
    from conformance.scanning.scan import scan

    files, left = listed(chosen.paths, (*chosen.exclude, *configuration.exclude))
    return scan(
        files,
        rules(issues, old, new, unchanged=chosen.unchanged),
        old=str(old),
        new=str(new),
        left=left,
        processes=chosen.jobs,
        progress=report_progress,
    )


def _write(chosen: argparse.Namespace, report: Report) -> None:
    from conformance.scanning import rendering
    from conformance.scanning.sarif import as_sarif
    from conformance.store.outputs import write_text
    from harness.commandline.main import version

    if chosen.format == options.JSON:
        text = json.dumps(rendering.as_json(report), indent=2) + "\n"
    elif chosen.format == SARIF:
        text = json.dumps(as_sarif(report, PROGRAM, version()), indent=2) + "\n"
    elif chosen.format == options.MARKDOWN:
        text = rendering.as_markdown(report)
    else:
        text = rendering.as_text(report)
    if chosen.output is None:
        print(text, end="")
        return
    write_text(chosen.output, text)
    print(f"{rendering.summary(report)}: {chosen.output}")


def _fix(
    chosen: argparse.Namespace,
    configuration: Configuration,
    issues: list[tuple[Cause, Change]],
    old: Side,
    new: Side,
) -> int:
    """Print the diff of what can be fixed, write it with --fix, and report what remains."""
    done = 0
    for _ in range(MOST_ROUNDS):
        report = _report(chosen, configuration, issues, old, new)
        fixed = _fix_once(report, write=chosen.fix)
        done += fixed
        if not fixed or not chosen.fix:
            break
    verb = "fixed" if chosen.fix else "would be fixed"
    print(f"{PROGRAM}: {done} findings {verb}", file=sys.stderr)
    if chosen.fix:
        _write(chosen, report)
    return DONE


def _fix_once(report: Report, *, write: bool) -> int:
    from conformance.scanning import rendering
    from conformance.scanning.fixing import fix
    from conformance.scanning.sources import newline_style, read_text
    from conformance.store.outputs import write_text

    by_file: dict[str, list[Finding]] = {}
    for one in report.findings:
        by_file.setdefault(one.path, []).append(one)
    done = 0
    for path, some in by_file.items():
        file = Path(path)
        if (style := newline_style(file)) is None:
            report_progress(f"{path}: not fixed: its line endings differ, or it is not UTF-8")
            continue
        fixed = fix(path, read_text(file), some)
        if fixed is None:
            continue
        done += len(fixed.findings)
        print(rendering.escaped(fixed.diff), end="")
        for clause in dict.fromkeys(one.proved for one in fixed.findings):
            print(f"# shown equal by {clause}: {PROGRAM} show {clause}")
        if write:
            write_text(file, style.restore(fixed.after))
    return done


ACTIONS = {"scan": Action(_add, _scan)}
