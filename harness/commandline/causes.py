"""`causes`: the known issues, each with a program of plain JAX that shows it."""

from __future__ import annotations

import argparse

from conformance.commandline.counting import counted
from harness.commandline import options, terminal
from harness.commandline.command import DONE, FOUND, Action, report_progress


def _add_list(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser, required=False)


def _list(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.causes import check, load_causes
    from conformance.catalogue.loading import load
    from conformance.judging.deviations import load_all, naming_causes
    from harness.running import causes

    known = load_causes()
    clauses = load().clauses
    named = naming_causes(load_all(), clauses.values())
    check(known, clauses, named)
    terminal.write(causes.listed(known, named, options.expand(chosen.files)))
    return DONE


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "causes",
        metavar="SLUG",
        nargs="*",
        help="only it, or all that begin so (default: all)",
    )
    options.add_targets(parser, "current")
    options.add_extras(parser)
    parser.add_argument(
        "--everywhere", action="store_true", help="also in versions of which a cause says nothing"
    )
    options.add_output(parser, "write what the programs did, a JSON line each")


def _run(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.causes import load_causes
    from harness.running import causes
    from harness.targets.target import expand_all

    done = causes.run(
        load_causes(),
        expand_all(chosen.target or ["current"]),
        chosen.causes,
        everywhere=chosen.everywhere,
        extras=chosen.extra,
        say=lambda line: terminal.write([line]),
        progress=report_progress,
    )
    if chosen.output:
        options.write_records(chosen.output, (one.record() for one in done))
    wrong = sum(1 for one in done if one.wrong)
    those = counted(len({one.cause for one in done}), "cause")
    print(f"{counted(len(done), 'run')} of {those}, {wrong} wrong")
    return FOUND if wrong else DONE


ACTIONS = {"causes list": Action(_add_list, _list), "causes run": Action(_add_run, _run)}
