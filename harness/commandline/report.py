"""`report`: what is published of results."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import sys
from pathlib import Path

from conformance.commandline.counting import counted
from harness.commandline import options, terminal
from harness.commandline.command import DONE, FOUND, Action
from harness.commandline.results import add_no_cache, print_answer, status
from reports.analysis import fail_on

NEW = "new"
PACKAGE = "pmap-conformance"


def _add_site(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_output(parser, "the folder of the site", metavar="DIR", required=True)
    parser.add_argument(
        "--repository",
        metavar="URL",
        type=_https,
        default=None,
        help="the address of the source code, linked on every page (default: the one that the "
        "installed package names)",
    )


def _https(text: str) -> str:
    """An address that a page may link."""
    if not re.fullmatch(r"https://[^\s\"'<>]+", text):
        raise argparse.ArgumentTypeError(f"{text} is not an https address: begin it with https://")
    return text


def _repository() -> str:
    """The address of the source code in the package's own metadata; empty where it names none."""
    try:
        named = importlib.metadata.metadata(PACKAGE).get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    for word, _, address in (str(one).partition(", ") for one in named):
        if word == "Repository":
            return address
    return ""


def _site(chosen: argparse.Namespace) -> int:
    from reports.analysis.content import with_content
    from reports.render.site.build import build, too_large
    from reports.render.site.page import MOST_BYTES
    from reports.store.results import load

    results = with_content(load(options.expand(chosen.files)))
    pages = build(results, chosen.output, chosen.repository or _repository())
    print(f"{counted(pages, 'page')}: {chosen.output / 'index.html'}")
    for page, size in too_large(chosen.output):
        print(f"{page} has {size} bytes; a page should have at most {MOST_BYTES}", file=sys.stderr)
    return DONE


def _add_upgrade(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    for option in ("--from", "--to"):
        parser.add_argument(
            option,
            dest=f"{option.strip('-')}_side",
            required=True,
            metavar=options.DEFAULT_SIDE,
            help=f"as in 0.7.2 or legacy_pmap@0.9.2 ({options.OF_DEFAULT})",
        )
    parser.add_argument(
        "--all",
        action="store_true",
        dest="whole",
        help="print all edits and every change, not only the likely ones",
    )
    options.add_format(parser, options.TEXT, options.JSON, options.MARKDOWN)
    options.add_fail_on(parser, fail_on.OF_UPGRADES)
    add_no_cache(parser)


def _upgrade(chosen: argparse.Namespace) -> int:
    from reports.analysis.answers import Answer

    asked = fail_on.named(chosen.fail_on, fail_on.OF_UPGRADES)
    files = options.expand(chosen.files)

    def make() -> Answer:
        from reports.analysis import policies
        from reports.analysis.effects.pairs import Effects, side
        from reports.analysis.effects.upgrade import upgrade
        from reports.render.text import upgrade as upgrade_text
        from reports.store.results import load

        results = load(files)
        old, new = (
            side(results, options.whole_side(text), option)
            for text, option in ((chosen.from_side, "--from"), (chosen.to_side, "--to"))
        )
        found = upgrade(Effects(results), old, new)
        if chosen.format == options.JSON:
            text = json.dumps(upgrade_text.as_json(results, found), indent=2) + "\n"
        elif chosen.format == options.MARKDOWN:
            text = upgrade_text.as_markdown(results, found)
        else:
            text = upgrade_text.as_text(results, found, whole=chosen.whole) + "\n"
        return Answer(text, policies.of_upgrade(found, asked))

    key = {
        "command": "upgrade",
        "from": options.whole_side(chosen.from_side),
        "to": options.whole_side(chosen.to_side),
        "format": chosen.format,
        "whole": chosen.whole,
        "fail_on": list(asked),
    }
    return print_answer(chosen, key, files, make)


def _add_entries(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entries", type=Path, default=None, metavar="FILE", help="what is known (TOML)"
    )


def _add_findings(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    _add_entries(parser)
    options.add_format(parser, options.MARKDOWN, options.JSON)
    options.add_output(parser, "write them there (default: standard output)")


def _findings(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from reports.analysis.comparing.agreement import agree
    from reports.analysis.comparing.changes import CompareError
    from reports.analysis.comparing.entries import FILE, load_entries
    from reports.render.text.findings import as_json, as_markdown, findings
    from reports.store.results import load

    entries = load_entries(chosen.entries or FILE)
    results = load(options.expand(chosen.files))
    try:
        agreement = agree(results, entries)
    except CompareError:  # of one implementation alone: what has a cause is found all the same
        agreement = None
    found = findings(results, agreement)
    as_lines = chosen.format == options.MARKDOWN
    text = as_markdown(found) if as_lines else json.dumps(as_json(found), indent=2) + "\n"
    if chosen.output is None:
        print(text, end="")
        return DONE
    write_text(chosen.output, text)
    gaps = f"{counted(len(found.gaps), 'claim')} without a clause"
    print(f"{counted(len(found.causes), 'cause')}, {gaps}: {chosen.output}")
    return DONE


def _add_agreement(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    parser.add_argument(
        "--reference",
        metavar=options.SIDE,
        help="the legacy pmap that later ones are compared with, as in legacy_pmap@0.7.2 (default: "
        "of each clause the newest that conforms)",
    )
    _add_entries(parser)
    options.add_format(parser, options.TEXT, options.JSON)
    parser.add_argument(
        "--fail-on",
        choices=(NEW, options.NONE),
        default=NEW,
        help="new: exit 1 where a difference has no entry (default: %(default)s)",
    )


def _agreement(chosen: argparse.Namespace) -> int:
    from reports.analysis.comparing.agreement import agree
    from reports.analysis.comparing.entries import FILE, load_entries
    from reports.render.text import agreement as agreement_text
    from reports.store.results import load

    entries = load_entries(chosen.entries or FILE)
    done = agree(load(options.expand(chosen.files)), entries, chosen.reference)
    if chosen.format == options.JSON:
        print(json.dumps(agreement_text.as_json(done), indent=2))
    else:
        terminal.write_text(agreement_text.as_text(done))
    return FOUND if done.new and chosen.fail_on == NEW else DONE


def _add_nightly(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="results of the night before")
    parser.add_argument("new", metavar="NEW", type=Path, help="of this night; or folders of them")
    options.add_output(parser, "write the text there, and fail on nothing by default")
    options.add_fail_on(
        parser, fail_on.OF_CHANGES, f"{fail_on.REGRESSIONS}; with -o {options.NONE}"
    )


def _nightly(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from reports.analysis import policies
    from reports.analysis.comparing.changes import compare
    from reports.render.text.nightly import as_issue
    from reports.store.results import load

    # What is written to a file is sent by a job, which is to go on: unless it says otherwise.
    default = () if chosen.output is not None else (fail_on.REGRESSIONS,)
    asked = fail_on.named(chosen.fail_on, fail_on.OF_CHANGES, default)
    new = load(options.expand([chosen.new]))
    found = compare(load(options.expand([chosen.old])), new)
    text = as_issue(found, new)
    if chosen.output is not None:
        write_text(chosen.output, text)
    else:
        print(text, end="")
    return status(policies.of_changes(found, asked))


ACTIONS = {
    "report site": Action(_add_site, _site, (), keeps_all=True),
    "report upgrade": Action(_add_upgrade, _upgrade, (), keeps_all=True),
    "report findings": Action(_add_findings, _findings, (OSError,), keeps_all=True),
    "report agreement": Action(_add_agreement, _agreement, (), keeps_all=True),
    "report nightly": Action(_add_nightly, _nightly, (OSError,), keeps_all=True),
}
