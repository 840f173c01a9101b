"""`results`: count, compare, judge again and measure results files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.commandline import limits
from conformance.commandline.counting import counted
from conformance.commandline.ending import PROGRAM
from harness.commandline import options, terminal
from harness.commandline.command import DONE, FOUND, Action, UsageError, report_progress
from reports.analysis import fail_on

if TYPE_CHECKING:
    from reports.analysis.answers import Answer

MOST_LISTED = 1_000_000
RED, LOST = "red", "lost"
ALL = "all"  # in place of an implementation: each is compared with itself


def _add_merge(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_output(parser, "the one file (.jsonl, .jsonl.xz)", required=True)
    parser.add_argument(
        "--fail-on",
        metavar="POLICY",
        help="write nothing, and exit 1, on red (a cell or a measurement of the time lane is red) "
        "or lost (a cell's program changed since it was run); several with commas (default: none)",
    )


def _merge(chosen: argparse.Namespace) -> int:
    from harness.results.rejudge import RefusedError, rejudge

    refused = fail_on.named(chosen.fail_on, (RED, LOST))
    try:
        found = rejudge(
            options.expand(chosen.files),
            chosen.output,
            progress=report_progress,
            no_red=RED in refused,
            no_lost=LOST in refused,
        )
    except RefusedError as error:
        report_progress(str(error))
        return FOUND
    size = chosen.output.stat().st_size / 1e6
    cells = counted(len(found.kept), "cell")
    print(f"{cells}, judged by today's catalogue: {chosen.output} ({size:.1f} MB)")
    for why, count in found.why.most_common():
        print(f"  {count} left out: {why}")
    return DONE


def _add_summary(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_format(parser, options.TEXT, options.JSON)
    options.add_fail_on(parser, fail_on.OF_RUNS)
    add_no_cache(parser)


def _summary(chosen: argparse.Namespace) -> int:
    from reports.analysis.answers import Answer

    asked = fail_on.named(chosen.fail_on, fail_on.OF_RUNS)
    files = options.expand(chosen.files)

    def make() -> Answer:
        from reports.analysis import policies
        from reports.render.text.summary import as_json, as_text
        from reports.store.results import load

        results = load(files)
        as_it_is = chosen.format == options.TEXT
        text = as_text(results) if as_it_is else json.dumps(as_json(results), indent=2)
        return Answer(f"{text}\n", policies.of_run(results, asked))

    key = {"command": "summary", "format": chosen.format, "fail_on": list(asked)}
    return print_answer(chosen, key, files, make)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="results, or a folder of them")
    parser.add_argument(
        "new", metavar="NEW", type=Path, nargs="?", help="left out: OLD, with --from and --to"
    )
    for option, which in (("--from", "OLD"), ("--to", "NEW")):
        parser.add_argument(
            option,
            dest=f"{option.strip('-')}_side",
            metavar=options.SIDE,
            help=f"only this of {which}, as in new_pmap@0.9.0; {ALL}@0.9.0 takes every "
            "implementation",
        )
    options.add_format(parser, options.TEXT, options.JSON)
    options.add_fail_on(parser, fail_on.OF_CHANGES, fail_on.REGRESSIONS)


def _compare(chosen: argparse.Namespace) -> int:
    from reports.analysis import policies
    from reports.analysis.comparing.changes import CompareError, compare
    from reports.render.text import changes as changes_text
    from reports.store.results import load

    asked = fail_on.named(chosen.fail_on, fail_on.OF_CHANGES, (fail_on.REGRESSIONS,))
    if chosen.new is None and not (chosen.from_side and chosen.to_side):
        raise CompareError(
            "only one run is given: give a second one, or name two of its JAX versions with "
            "--from and --to"
        )
    implementation, one_jax, other_jax = _sides(chosen.from_side, chosen.to_side)
    old = load(options.expand([chosen.old]))
    new = old if chosen.new is None else load(options.expand([chosen.new]))
    found = compare(old, new, one_jax, other_jax, implementation)
    if chosen.format == options.JSON:
        print(json.dumps(changes_text.as_json(found), indent=2))
    else:
        terminal.write_text(changes_text.as_text(found))
    return status(policies.of_changes(found, asked))


def _sides(old: str | None, new: str | None) -> tuple[str | None, str | None, str | None]:
    """Return the implementation of both sides (None: all), and the JAX of each (None: all)."""
    named = [
        options.parse_side(text, option)
        for text, option in ((old, "--from"), (new, "--to"))
        if text
    ]
    names = list(dict.fromkeys(name for name, _ in named))
    if len(names) > 1:
        raise UsageError(
            f"--from {old} --to {new}: both take one implementation; `{PROGRAM} report upgrade` "
            "compares two"
        )
    one = old and options.parse_side(old, "--from")[1]
    other = new and options.parse_side(new, "--to")[1]
    return (names[0] if names and names[0] != ALL else None), one, other


def _add_strength(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    parser.add_argument(
        "--clause",
        action="append",
        default=[],
        metavar="ID",
        help="only it, or all that begin with these words or match a pattern, repeatable",
    )
    parser.add_argument(
        "--sample", type=limits.whole(1, MOST_LISTED), metavar="N", help="only N cells"
    )
    parser.add_argument(
        "--weakest",
        type=limits.whole(0, MOST_LISTED),
        default=20,
        metavar="N",
        help="how many clauses are listed (default: %(default)s)",
    )
    parser.add_argument(
        "--examples", action="store_true", help="with a cell of each that was not noticed"
    )
    options.add_format(parser, options.TEXT, options.JSON)
    options.add_output(parser, "write each clause's strength as results, for the site")
    parser.add_argument(
        "--fail-on",
        type=_below,
        metavar="below=SHARE",
        help="exit 1 where a smaller share is noticed, as in below=0.95; or none (default: none)",
    )


def _below(text: str) -> float | None:
    """Return the share of `below=SHARE`; None for `none`."""
    if text == options.NONE:
        return None
    name, _, share = text.partition("=")
    if name != "below":
        raise argparse.ArgumentTypeError(
            f"{limits.shown(text)}: write below=SHARE, as in below=0.95, or none"
        )
    return limits.share(share)


def _strength(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.strength import lines, record, records, strength
    from conformance.judging.deviations import load_all

    found = strength(
        options.expand(chosen.files),
        load(),
        load_all(),
        clauses=chosen.clause,
        sample=chosen.sample,
    )
    if chosen.format == options.JSON:
        print(json.dumps(record(found), indent=1))
    else:
        terminal.write(lines(found, weakest=chosen.weakest, examples=chosen.examples))
    if chosen.output:
        options.write_records(chosen.output, records(found))
    share = found.total().share
    if chosen.fail_on is not None and share < chosen.fail_on:
        report_progress(f"fails on below={chosen.fail_on}: noticed {share:.4f}")
        return FOUND
    return DONE


def _add_coverage(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser, required=False)
    parser.add_argument("--all", action="store_true", help="whole lists")
    options.add_format(parser, options.TEXT, options.JSON)


def _coverage(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.claims import load_claims
    from conformance.catalogue.loading import load
    from conformance.commands.coverage import coverage, lines, record
    from conformance.judging.deviations import load_all

    found = coverage(load(), load_claims(), load_all(), options.expand(chosen.files))
    if chosen.format == options.JSON:
        print(json.dumps(record(found), indent=1))
    else:
        terminal.write(lines(found, everything=chosen.all))
    return DONE


def _add_propose(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_format(parser, options.TEXT, options.JSON)


def _propose(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.claims import SILENCE, load_claims
    from conformance.catalogue.loading import load
    from conformance.commands.proposal_lines import lines, record
    from conformance.commands.propose import propose
    from conformance.judging.deviations import load_all

    claims = load_claims().claims
    undocumented = {slug for slug, one in claims.items() if one.kind == SILENCE}
    found = propose(load(), load_all(), options.expand(chosen.files), undocumented)
    if chosen.format == options.JSON:
        print(json.dumps(record(found), indent=1))
        return DONE
    for line in lines(found):  # TOML to be pasted: never wrapped
        print(line)
    return DONE


def _add_durations(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)


def _durations(chosen: argparse.Namespace) -> int:
    from harness.results import durations
    from harness.running import tiers

    count = durations.write(options.expand(chosen.files))
    least = f"{durations.LEAST_S} s, or {durations.LEAST_BUSY_S} s of CPU time, and more"
    print(f"{counted(count, 'run')} of {least}: {tiers.FILE}")
    return DONE


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Declare --no-cache: do not reuse the output for the same files."""
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="read the files again; else what was printed of the same files is printed again",
    )


def print_answer(
    chosen: argparse.Namespace,
    key: Mapping[str, Any],
    files: list[Path],
    make: Callable[[], Answer],
) -> int:
    """Print what `make` returns, or the cached answer for the same `key` and files."""
    from reports.analysis.answers import answered

    answer = make() if chosen.no_cache else answered(key, files, make)
    print_text(answer.text, chosen.format)
    return status(answer.counted)


def print_text(text: str, format: str) -> None:
    """Print prose wrapped for a terminal, and any other format unchanged."""
    if format == options.TEXT:
        terminal.write_text(text)
    else:
        print(text, end="")


def status(counted: Mapping[str, int]) -> int:
    """Return the exit status by the policies of --fail-on, and name those that are violated."""
    broken = fail_on.broken(counted)
    if broken:
        print(f"{PROGRAM}: fails on {broken}", file=sys.stderr)
    return FOUND if broken else DONE


ACTIONS = {
    "results merge": Action(_add_merge, _merge),
    "results summary": Action(_add_summary, _summary, (), keeps_all=True),
    "results compare": Action(_add_compare, _compare, (), keeps_all=True),
    "results strength": Action(_add_strength, _strength),
    "results coverage": Action(_add_coverage, _coverage),
    "results propose": Action(_add_propose, _propose),
    "results durations": Action(_add_durations, _durations),
}
