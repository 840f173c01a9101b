"""The command line of the catalogue: what is claimed, what checks it, and what changed since.

A review of a document's new revision starts with `drift`; a search for what no clause checks yet
with `claims`; a look at one clause with `show`; a clause of your own with `new`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from conformance.catalogue.claims import drift, load_claims
from conformance.commandline import limits
from conformance.commandline.ending import of_output, reason, without_traceback
from conformance.commandline.outputs import write_text

EXIT_OK = 0
EXIT_DRIFT = 1
EXIT_WEAK = 1
EXIT_WRONG = 1
EXIT_USAGE = 2

MOST_LISTED = 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand, and return the exit status."""
    options = _parser().parse_args(argv)
    try:
        match options.command:
            case "drift":
                return _drift(options.document, options.file)
            case "show":
                return _show(options)
            case "strength":
                return _strength(options)
            case "coverage":
                return _coverage(options)
            case "deviations":
                return _deviations(options)
            case "causes":
                return _causes(options)
            case "pods":
                return _pods(options.target or ["newest"], options.output)
            case "new":
                return _new(options.id, options.claim, options.module)
            case _:
                return _claims(options.slug)
    except (OSError, ValueError) as error:
        if of_output(error):
            raise
        print(f"error: {reason(error)}", file=sys.stderr)
        return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description="What the documents about pmap claim."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    claims_parser = commands.add_parser(
        "claims", help="list the claims, and how many clauses check each; or the clauses of one"
    )
    claims_parser.add_argument("slug", metavar="SLUG", nargs="?", help="a claim")
    show_parser = commands.add_parser(
        "show", help="print a clause whole: what it expects, how it is written, how it is run"
    )
    show_parser.add_argument("id", metavar="ID", help="as in errors.lowered.one-process-map")
    new_parser = commands.add_parser("new", help="write a clause's skeleton where it belongs")
    new_parser.add_argument("id", metavar="ID", help="as in errors.some-thing")
    new_parser.add_argument("--claim", required=True, metavar="SLUG", help="the claim it checks")
    new_parser.add_argument("--module", metavar="NAME", help="of its section; made if not there")
    strength_parser = commands.add_parser(
        "strength", help="perturb what was recorded, and print how much of it would be noticed"
    )
    strength_parser.add_argument("files", metavar="RESULTS", type=Path, nargs="+")
    strength_parser.add_argument(
        "--clause",
        action="append",
        default=[],
        metavar="ID",
        help="only it, or those that begin so",
    )
    strength_parser.add_argument(
        "--sample", type=limits.whole(1, MOST_LISTED), metavar="N", help="only N cells"
    )
    strength_parser.add_argument(
        "--weakest",
        type=limits.whole(0, MOST_LISTED),
        default=20,
        metavar="N",
        help="how many clauses are listed",
    )
    strength_parser.add_argument(
        "--examples", action="store_true", help="with a cell of each that was not noticed"
    )
    strength_parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    strength_parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write each clause's strength, for the report"
    )
    strength_parser.add_argument(
        "--floor",
        type=limits.share,
        metavar="SHARE",
        help="exit 1 where less is noticed, as in 0.95",
    )
    causes_parser = commands.add_parser(
        "causes", help="list what JAX does and a user feels; or run the programs that show it"
    )
    causes_parser.add_argument(
        "files", metavar="RESULTS", type=Path, nargs="*", help="say in which versions it shows"
    )
    causes_parser.add_argument(
        "--run", action="store_true", help="run the programs; exit 1 if wrong"
    )
    causes_parser.add_argument(
        "--target", action="append", metavar="SPEC", help="as pytest's --target; default: current"
    )
    causes_parser.add_argument(
        "--extra", action="append", default=[], metavar="NAME", help="as pytest's --extra"
    )
    causes_parser.add_argument(
        "--cause",
        action="append",
        default=[],
        metavar="SLUG",
        help="only it, or those beginning so",
    )
    causes_parser.add_argument(
        "--everywhere", action="store_true", help="also in versions of which a cause says nothing"
    )
    causes_parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write what the programs did, a JSON line each"
    )
    coverage_parser = commands.add_parser(
        "coverage", help="print the claims without a clause, and what results do not exercise"
    )
    coverage_parser.add_argument("files", metavar="RESULTS", type=Path, nargs="*")
    coverage_parser.add_argument("--all", action="store_true", help="whole lists")
    coverage_parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    deviations_parser = commands.add_parser(
        "deviations", help="list the entries; or print those that recorded cells ask for"
    )
    deviations_parser.add_argument(
        "--propose",
        metavar="RESULTS",
        type=Path,
        nargs="+",
        help="entries to add as TOML, and what to narrow and to drop",
    )
    deviations_parser.add_argument("--json", action="store_true", help="the same as JSON")
    pods_parser = commands.add_parser(
        "pods", help="print what an access moves as a TPU pod grows: compiled, not run"
    )
    pods_parser.add_argument(
        "--target", action="append", metavar="SPEC", help="as pytest's --target; default: newest"
    )
    pods_parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write a results file, for the report"
    )
    drift_parser = commands.add_parser(
        "drift", help="print the headings of a document that need another look; exit 1 if any"
    )
    drift_parser.add_argument("document", metavar="DOCUMENT-SLUG")
    drift_parser.add_argument("file", metavar="FILE", type=Path, help="the document's text today")
    return parser


def _claims(slug: str | None) -> int:
    # The clauses are imported where they are asked for: their probes need JAX, `drift` does not.
    from conformance.catalogue.loading import load

    known = load_claims()
    claims = known.claims
    clauses = load().clauses.values()
    if slug is not None:
        if slug not in claims:
            raise ValueError(f"no claim is called {slug}: call `claims` alone to list them")
        one = claims[slug]
        print(f"{one.ref:<4} {one.kind:<11} {one.slug}: {one.statement}")
        if one.heading:
            print(f"  stands in {', '.join(known.stands_in(one))}")
        for clause in clauses:
            if clause.claim == slug:
                print(f"  {clause.id}: {clause.title}")
        return EXIT_OK
    counts = Counter(clause.claim for clause in clauses)
    for one in claims.values():
        print(f"{one.ref:<4} {one.kind:<11} {counts[one.slug]:>3}  {one.slug}: {one.statement}")
    gaps = sum(1 for slug in claims if not counts[slug])
    print(f"{len(claims)} claims, {gaps} without a clause")
    return EXIT_OK


def _show(options: argparse.Namespace) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.show import show
    from conformance.judging.deviations import load_all

    for line in show(load(), load_claims(), load_all(), options.id):
        print(line)
    return EXIT_OK


def _causes(options: argparse.Namespace) -> int:
    from conformance.catalogue.causes import check, load_causes
    from conformance.catalogue.loading import load
    from conformance.commands import causes
    from conformance.judging.deviations import load_all, naming_causes

    known = load_causes()
    if not options.run:
        clauses = load().clauses
        named = naming_causes(load_all(), clauses.values())
        check(known, clauses, named)
        for line in causes.listed(known, named, options.files):
            print(line)
        return EXIT_OK
    targets = options.target or ["current"]
    done = causes.run(
        known, targets, options.cause, everywhere=options.everywhere, extras=options.extra
    )
    if options.record:
        _write(options.record, (one.record() for one in done))
    wrong = sum(1 for one in done if one.wrong)
    print(f"{len(done)} runs of {len({one.cause for one in done})} causes, {wrong} wrong")
    return EXIT_WRONG if wrong else EXIT_OK


def _pods(specs: Sequence[str], output: Path | None) -> int:
    from conformance.commands.pods import grown, lines

    found = []
    for spec in specs:
        some = grown(spec, progress=lambda text: print(text, file=sys.stderr))
        found += some
        for line in lines(some):
            print(line)
    if output:
        _write(output, found)
    return EXIT_OK


def _strength(options: argparse.Namespace) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.strength import lines, record, records, strength
    from conformance.judging.deviations import load_all

    found = strength(
        options.files, load(), load_all(), clauses=options.clause, sample=options.sample
    )
    if options.json:
        print(json.dumps(record(found), indent=1))
    else:
        for line in lines(found, weakest=options.weakest, examples=options.examples):
            print(line)
    if options.record:
        _write(options.record, records(found))
    share = found.total().share
    if options.floor is not None and share < options.floor:
        print(f"noticed {share:.4f}, less than the floor {options.floor}", file=sys.stderr)
        return EXIT_WEAK
    return EXIT_OK


def _coverage(options: argparse.Namespace) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.coverage import coverage, lines, record
    from conformance.judging.deviations import load_all

    found = coverage(load(), load_claims(), load_all(), options.files)
    if options.json:
        print(json.dumps(record(found), indent=1))
    else:
        for line in lines(found, everything=options.all):
            print(line)
    return EXIT_OK


def _deviations(options: argparse.Namespace) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.propose import propose
    from conformance.commands.proposed import lines, named, record
    from conformance.judging.deviations import load_all

    if not options.propose:
        for entry in load_all():
            print(named(entry))
        return EXIT_OK
    found = propose(load(), load_all(), options.propose)
    if options.json:
        print(json.dumps(record(found), indent=1))
        return EXIT_OK
    for line in lines(found):
        print(line)
    return EXIT_OK


def _write(file: Path, records: Iterable[dict[str, Any]]) -> None:
    write_text(file, "".join(json.dumps(one) + "\n" for one in records))


def _new(id: str, claim: str, module: str | None) -> int:
    from conformance.catalogue.loading import load
    from conformance.commands.new import new

    file = new(load(), load_claims(), id, claim, module)
    print(f"{file}: the clause stands at its end, and is red; write what it expects, and run")
    print(f"  pytest suites/test_{id.partition('.')[0]}.py --clause {id} --target current")
    return EXIT_OK


def _drift(document: str, file: Path) -> int:
    found = drift(load_claims(), {document: file.read_text(encoding="utf-8")})
    for item in found:
        print(item)
    if not found:
        print(f"{document}: as it was when it was reviewed")
    return EXIT_DRIFT if found else EXIT_OK


def _run() -> int:
    return without_traceback(main)


if __name__ == "__main__":
    sys.exit(_run())
