"""`python -m reports`: counts of results files, and the site made from them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from reports.reading.results import ResultsError, load
from reports.site.build import SiteError, build
from reports.summary import as_json, as_text, printable

USAGE_OR_INPUT_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; 2 and one line on stderr where its input cannot be used."""
    args = _parser().parse_args(argv)
    try:
        results = load(args.files)
        if args.command == "build":
            print(f"{build(results, args.output)} pages: {args.output / 'index.html'}")
        elif args.json:
            print(json.dumps(as_json(results), indent=2))
        else:
            print(as_text(results))
    except (ResultsError, SiteError) as error:
        message = printable(" ".join(str(error).split()))
        print(f"reports: {message}", file=sys.stderr)
        return USAGE_OR_INPUT_ERROR
    return 0


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
    return parser


if __name__ == "__main__":
    sys.exit(main())
