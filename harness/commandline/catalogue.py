"""`list`, `show`, `new`, `drift`: claims, the clauses that test them, and changes since."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.commandline.counting import counted
from conformance.commandline.ending import PROGRAM
from harness.commandline import options, terminal
from harness.commandline.command import DONE, FOUND, Action

if TYPE_CHECKING:  # a command imports what it needs
    from conformance.catalogue.claims import Claim, Claims

TIERS = ("core", "full")  # as harness.running.tiers, which a command imports by itself


def _add_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tier", choices=TIERS, default=TIERS[0], help="default: %(default)s")
    options.add_targets(parser, "current; nothing is installed")


def _list_cells(chosen: argparse.Namespace) -> int:
    from harness.running import listing

    found = listing.cells_of(chosen.tier, chosen.target or ["current"])
    for cell in sorted(found.cells, key=lambda one: (one.clause, str(one))):
        print(f"{cell.clause} {cell.implementation} {cell.topology} {cell.target}")
    runs = f"{found.runs} of {counted(found.of, 'run')}"
    print(f"{chosen.tier}: {counted(len(found.cells), 'cell')}, {runs}", file=sys.stderr)
    return DONE


def _add_claims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claim", metavar="CLAIM", nargs="?", help="a claim: list its clauses")


def _list_claims(chosen: argparse.Namespace) -> int:
    terminal.write(_lines_of_claims(chosen.claim))
    return DONE


def _lines_of_claims(slug: str | None) -> Iterator[str]:
    from conformance.catalogue.claims import load_claims
    from conformance.catalogue.loading import load

    known = load_claims()
    claims = known.claims
    clauses = load().clauses.values()
    if slug is not None:
        one = _claim(slug, known)
        yield f"{one.ref:<4} {one.kind:<11} {one.slug}: {one.statement}"
        if one.heading:
            yield f"  stands in {', '.join(known.stands_in(one))}"
        for clause in clauses:
            if clause.claim == slug:
                yield f"  {clause.id}: {clause.title}"
        return
    counts = Counter(clause.claim for clause in clauses)
    for one in claims.values():
        yield f"{one.ref:<4} {one.kind:<11} {counts[one.slug]:>3}  {one.slug}: {one.statement}"
    gaps = sum(1 for slug in claims if not counts[slug])
    yield f"{counted(len(claims), 'claim')}, {gaps} without a clause"


def _claim(slug: str, known: Claims) -> Claim:
    """Return the claim of this slug; ValueError with similar ones if there is none."""
    from conformance.catalogue.spelling import did_you_mean

    if slug not in known.claims:
        meant = did_you_mean(slug, known.claims) or "; `list claims` lists them"
        raise ValueError(f"no claim is called {slug}{meant}")
    return known.claims[slug]


def _add_clauses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids",
        metavar="ID",
        nargs="*",
        help="only it, or all that begin with these words or match a pattern",
    )


def _list_clauses(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.claims import load_claims
    from conformance.catalogue.loading import load

    known = load_claims()
    for word in chosen.ids:
        if word.split(".")[0] in known.documents:
            slug = _claim(word, known).slug
            raise ValueError(f"{slug} is a claim: `list claims {slug}` lists its clauses")
    some = load().beginning(chosen.ids).clauses
    terminal.write(f"{one.id}: {one.title}" for one in some.values())
    print(counted(len(some), "clause"), file=sys.stderr)
    return DONE


def _list_deviations(chosen: argparse.Namespace) -> int:
    from conformance.commands.proposal_lines import named
    from conformance.judging.deviations import load_all

    for entry in load_all():
        print(named(entry))
    return DONE


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """Declare no options."""


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a clause, as in errors.lowered.one-process-map")


def _show(chosen: argparse.Namespace) -> int:
    from conformance.catalogue.claims import load_claims
    from conformance.catalogue.loading import with_section_of
    from conformance.commands.show import show
    from conformance.judging.deviations import load_all

    catalogue, entries = with_section_of(chosen.id), load_all(chosen.id.split(".")[0])
    for line in show(catalogue, load_claims(), entries, chosen.id):
        print(line)
    return DONE


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="as in errors.some-thing")
    parser.add_argument("--claim", required=True, metavar="CLAIM", help="the claim it checks")
    parser.add_argument("--module", metavar="NAME", help="a module of its section, made if missing")


def _new(chosen: argparse.Namespace) -> int:
    from conformance.catalogue import loading
    from conformance.catalogue.claims import load_claims
    from conformance.commands.new import new, subject

    file = new(loading.load(), load_claims(), chosen.id, chosen.claim, chosen.module)
    print(f"{file}: {subject(file)}")
    print("The new clause is at the end, and fails until you write what it expects; then run")
    print(f"  {PROGRAM} run --clause {chosen.id} --target current")
    return DONE


def _add_drift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", metavar="DOCUMENT", help="the slug of a document")
    parser.add_argument("file", metavar="FILE", type=Path, help="its text today (Markdown or page)")


def _drift(chosen: argparse.Namespace) -> int:
    from conformance.catalogue import claims

    text = chosen.file.read_text(encoding="utf-8")
    found = claims.drift(claims.load_claims(), {chosen.document: text})
    terminal.write(map(str, found))
    if not found:
        print(f"{chosen.document}: unchanged since its review")
    return FOUND if found else DONE


ACTIONS = {
    "list cells": Action(_add_cells, _list_cells),
    "list claims": Action(_add_claims, _list_claims),
    "list clauses": Action(_add_clauses, _list_clauses),
    "list deviations": Action(_add_nothing, _list_deviations),
    "show": Action(_add_show, _show),
    "new": Action(_add_new, _new),
    "drift": Action(_add_drift, _drift),
}
