"""The command line of the catalogue: what is claimed, and what changed in a document since.

A review of a document's new revision starts with `drift`; a search for what no clause checks yet
starts with `claims`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from conformance.catalogue.claims import drift, load_claims

EXIT_OK = 0
EXIT_DRIFT = 1
EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand, and return the exit status."""
    options = _parser().parse_args(argv)
    try:
        if options.command == "drift":
            return _drift(options.document, options.file)
        return _claims()
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description="What the documents about pmap claim."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("claims", help="list the claims, and how many clauses check each")
    drift_parser = commands.add_parser(
        "drift", help="print the headings of a document that need another look; exit 1 if any"
    )
    drift_parser.add_argument("document", metavar="DOCUMENT-SLUG")
    drift_parser.add_argument("file", metavar="FILE", type=Path, help="the document's text today")
    return parser


def _claims() -> int:
    # The clauses are imported for this command alone: their probes need JAX, `drift` does not.
    from conformance.catalogue.loading import load

    claims = load_claims().claims
    clauses = Counter(clause.claim for clause in load().clauses.values())
    for claim in claims.values():
        count = clauses[claim.slug]
        print(f"{claim.ref:<4} {claim.kind:<11} {count:>3}  {claim.slug}: {claim.statement}")
    gaps = sum(1 for slug in claims if not clauses[slug])
    print(f"{len(claims)} claims, {gaps} without a clause")
    return EXIT_OK


def _drift(document: str, file: Path) -> int:
    found = drift(load_claims(), {document: file.read_text(encoding="utf-8")})
    for item in found:
        print(item)
    if not found:
        print(f"{document}: as it was when it was reviewed")
    return EXIT_DRIFT if found else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
