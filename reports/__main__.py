"""`python -m reports`: results files counted, shown as a site, and compared."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.commandline.ending import without_traceback
from conformance.commandline.outputs import write_text
from reports import fail_on
from reports.answers import Answer, answered
from reports.input_error import InputError

if TYPE_CHECKING:
    from reports.reading.results import Results

OK = 0
WORSE = 1
USAGE_OR_INPUT_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; 2 and one line on stderr where its input cannot be used.

    A command imports what it needs by itself, so that `--help` and kept answers come at once.
    """
    args = _parser().parse_args(argv)
    try:
        match args.command:
            case "build":
                _build(args)
            case "compare":
                return _compare(args)
            case "agreement":
                return _agreement(args)
            case "nightly":
                return _nightly(args)
            case "findings":
                _findings(args)
            case "freeze":
                return _freeze(args)
            case "readme":
                _readme(args)
            case "upgrade":
                return _upgrade(args)
            case _:
                return _summary(args)
    except InputError as error:
        from reports.summary import printable

        message = printable(" ".join(str(error).split()))
        print(f"reports: {message}", file=sys.stderr)
        return USAGE_OR_INPUT_ERROR
    return OK


def _build(args: argparse.Namespace) -> None:
    from reports.reading.results import load
    from reports.site.build import build

    print(f"{build(load(args.files), args.output)} pages: {args.output / 'index.html'}")


def _summary(args: argparse.Namespace) -> int:
    asked = fail_on.named(args.fail_on, fail_on.OF_RUNS)

    def make() -> Answer:
        from reports import policies
        from reports.reading.results import load
        from reports.summary import as_json, as_text

        results = load(args.files)
        text = json.dumps(as_json(results), indent=2) if args.json else as_text(results)
        return Answer(f"{text}\n", policies.of_run(results, asked))

    return _answered(args, asked, make)


def _answered(args: argparse.Namespace, asked: Sequence[str], make: Callable[[], Answer]) -> int:
    """Print what `make` answers, or answered of the same files before; the exit status."""
    options = {name: value for name, value in vars(args).items() if name != "files"}
    options["fail_on"] = list(asked)
    answer = make() if args.no_cache else answered(options, args.files, make)
    print(answer.text, end="")
    return _judged(answer.counted)


def _judged(counted: Mapping[str, int]) -> int:
    """The exit status by the policies of --fail-on; those that are broken are named."""
    said = fail_on.broken(counted)
    if said:
        print(f"reports: fails on {said}", file=sys.stderr)
    return WORSE if said else OK


def _compare(args: argparse.Namespace) -> int:
    from reports import policies
    from reports.comparing import changes_told
    from reports.comparing.changes import CompareError, compare

    asked = fail_on.named(args.fail_on, fail_on.OF_CHANGES, (fail_on.REGRESSIONS,))
    if args.new is None and not (args.from_target and args.to_target):
        raise CompareError("one run alone: give a second one, or --from and --to, two JAX of it")
    old = _side(args.old)
    new = old if args.new is None else _side(args.new)
    found = compare(old, new, args.from_target, args.to_target)
    if args.json:
        print(json.dumps(changes_told.as_json(found), indent=2))
    else:
        print(changes_told.as_text(found))
    return _judged(policies.of_changes(found, asked))


def _nightly(args: argparse.Namespace) -> int:
    from reports import policies
    from reports.comparing.changes import compare
    from reports.nightly import as_issue

    # What is written to a file is sent by a job, which is to go on: unless it says otherwise.
    default = () if args.output is not None else (fail_on.REGRESSIONS,)
    asked = fail_on.named(args.fail_on, fail_on.OF_CHANGES, default)
    new = _side(args.new)
    found = compare(_side(args.old), new)
    text = as_issue(found, new)
    if args.output is not None:
        _write(args.output, text)
    else:
        print(text, end="")
    return _judged(policies.of_changes(found, asked))


def _agreement(args: argparse.Namespace) -> int:
    from reports.comparing import agreement_told
    from reports.comparing.agreement import agree
    from reports.comparing.entries import FILE, load_entries
    from reports.reading.results import load

    entries = load_entries(args.entries or FILE)
    done = agree(load(args.files), entries, args.oracle)
    if args.json:
        print(json.dumps(agreement_told.as_json(done), indent=2))
    else:
        print(agreement_told.as_text(done))
    return WORSE if done.new else OK


def _findings(args: argparse.Namespace) -> None:
    from reports.comparing.agreement import agree
    from reports.comparing.changes import CompareError
    from reports.comparing.entries import FILE, load_entries
    from reports.findings import as_json, as_markdown, findings
    from reports.reading.results import load

    entries = load_entries(args.entries or FILE)
    results = load(args.files)
    try:
        agreement = agree(results, entries)
    except CompareError:  # of one implementation alone: what has a cause is found all the same
        agreement = None
    found = findings(results, agreement)
    text = json.dumps(as_json(found), indent=2) + "\n" if args.json else as_markdown(found)
    if args.output is None:
        print(text, end="")
        return
    _write(args.output, text)
    print(f"{len(found.causes)} causes, {len(found.gaps)} claims without a clause: {args.output}")


def _freeze(args: argparse.Namespace) -> int:
    from reports.frozen import difference, freeze
    from reports.reading.results import load

    lines = list(freeze(load(args.files)))
    if args.against is None:
        _write(args.output, "".join(f"{line}\n" for line in lines))
        print(f"{len(lines)} lines: {args.output}")
        return OK
    found = difference(_lines(args.against), lines)
    for sign, some in (("-", found.gone), ("+", found.new)):
        for line in some:
            print(f"{sign}{line}")
    print(f"{len(lines)} lines; only before: {len(found.gone)}, only now: {len(found.new)}")
    return WORSE if found else OK


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _readme(args: argparse.Namespace) -> None:
    from reports.reading.results import load
    from reports.readme import replaced

    try:
        text = args.into.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{args.into}: {error.strerror}") from None
    _write(args.into, replaced(text, load(args.files)))


def _write(file: Path, text: str) -> None:
    try:
        write_text(file, text)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _upgrade(args: argparse.Namespace) -> int:
    asked = fail_on.named(args.fail_on, fail_on.OF_UPGRADES)

    def make() -> Answer:
        from reports import policies
        from reports.effects import told
        from reports.effects.pairs import Effects, side
        from reports.effects.upgrade import upgrade
        from reports.reading.results import load

        results = load(args.files)
        old, new = (
            side(results, text, option)
            for text, option in ((args.old_side, "--from"), (args.new_side, "--to"))
        )
        found = upgrade(Effects(results), old, new)
        if args.json:
            text = json.dumps(told.as_json(results, found), indent=2) + "\n"
        elif args.markdown:
            text = told.as_markdown(results, found)
        else:
            text = told.as_text(results, found) + "\n"
        return Answer(text, policies.of_upgrade(found, asked))

    return _answered(args, asked, make)


def _side(text: str) -> Results:
    """The results of one file, or of several that commas join."""
    from reports.reading.results import load

    return load([text] if Path(text).exists() else text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    files = argparse.ArgumentParser(add_help=False)
    files.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="results (JSON Lines), later ones win"
    )
    summary = commands.add_parser("summary", parents=[files], help="print counts by verdict")
    summary.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    site = commands.add_parser("build", parents=[files], help="write the static site")
    site.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    compared = commands.add_parser(
        "compare",
        help="print what changed between two runs; exit 1 if any cell became worse",
    )
    compared.add_argument("old", metavar="OLD", help="results; several files joined by commas")
    compared.add_argument(
        "new", metavar="NEW", nargs="?", help="the same; left out: OLD, with --from and --to"
    )
    compared.add_argument(
        "--from", dest="from_target", metavar="JAX", help="only this JAX of OLD, as in 0.9.0"
    )
    compared.add_argument("--to", dest="to_target", metavar="JAX", help="only this JAX of NEW")
    compared.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    nightly = commands.add_parser(
        "nightly",
        help="print what an issue is told of a nightly run, regressions first; exit 1 if any",
    )
    nightly.add_argument("old", metavar="OLD", help="the last night's results; commas join files")
    nightly.add_argument("new", metavar="NEW", help="this night's")
    nightly.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it; exit 0")
    agreed = commands.add_parser(
        "agreement",
        parents=[files],
        help="compare the implementations field by field; exit 1 if a difference is new",
    )
    agreed.add_argument(
        "--oracle",
        metavar="legacy_pmap@JAX",
        help="whose legacy pmap later ones are compared with; default: of each clause the newest "
        "that conforms",
    )
    upgraded = commands.add_parser(
        "upgrade",
        parents=[files],
        help="print what changes for programs from one implementation and JAX to another",
    )
    for option, name in (("--from", "old_side"), ("--to", "new_side")):
        upgraded.add_argument(
            option,
            dest=name,
            required=True,
            metavar="IMPLEMENTATION@JAX",
            help="as in legacy_pmap@0.7.2",
        )
    shape = upgraded.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="for a pull request, below 1 MiB")
    shape.add_argument("--json", action="store_true", help="one JSON object, every program listed")
    made = commands.add_parser(
        "readme", parents=[files], help="write what upgrades change into a README, between marks"
    )
    made.add_argument("--into", type=Path, default=Path("README.md"), metavar="FILE")
    frozen = commands.add_parser(
        "freeze",
        parents=[files],
        help="write verdict, finding codes, cause and effect of every cell and upgrade, a line "
        "each; or compare them with such a file, and exit 1 if anything differs",
    )
    frozen_to = frozen.add_mutually_exclusive_group(required=True)
    frozen_to.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the lines")
    frozen_to.add_argument("--against", type=Path, metavar="FILE", help="compare with these lines")
    told = commands.add_parser(
        "findings", parents=[files], help="write what JAX does and no document says, a line each"
    )
    told.add_argument("-o", "--output", type=Path, metavar="FILE", help="left out: stdout")
    for parser_of, known, default in (
        (summary, fail_on.OF_RUNS, fail_on.NONE),
        (compared, fail_on.OF_CHANGES, fail_on.REGRESSIONS),
        (nightly, fail_on.OF_CHANGES, f"{fail_on.REGRESSIONS}; with -o {fail_on.NONE}"),
        (upgraded, fail_on.OF_UPGRADES, fail_on.NONE),
    ):
        parser_of.add_argument(
            "--fail-on",
            metavar="POLICY,...",
            help=f"exit 1 if there are any: {', '.join(known)}; or {fail_on.NONE}; "
            f"default: {default}",
        )
    for parser_of in (summary, upgraded):
        parser_of.add_argument(
            "--no-cache",
            action="store_true",
            help="read the files again; else what was printed of the same files is printed again",
        )
    for parser_of in (agreed, told):
        parser_of.add_argument(
            "--entries", type=Path, default=None, metavar="FILE", help="what is known (TOML)"
        )
        parser_of.add_argument("--json", action="store_true", help="one JSON object instead")
    return parser


def _run() -> int:
    # What is read is kept: to look for cycles in it again and again takes a third of the time.
    gc.disable()
    return without_traceback(main, "reports")


if __name__ == "__main__":
    sys.exit(_run())
