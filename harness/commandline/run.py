"""`run`: the main job without knowing pytest: cells, results, strength, agreement, site, summary.

It calls pytest in this process. Arguments after `--` are passed to pytest.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.commandline.ending import PROGRAM
from harness.commandline import options
from harness.commandline.command import DONE, FAILED, FOUND, Action, UsageError, report_progress

SUITE = "harness/suite/test_sections.py"
TARGETS = ("jax==0.9.0", "newest")  # all implementations in one process, and what is to come
EXTRAS = ("flax", "equinox", "absl-py", "chex", "dm-haiku", "orbax-checkpoint")
RESULTS = Path("build/results/matrix.jsonl")
SITE = Path("build/site")
TIMING = "timing"
INTERRUPTED = 130  # as a shell reports SIGINT


def _add(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [options] [-- PYTEST-OPTION ...]"
    options.add_targets(parser, f"{' and '.join(TARGETS)}, where they can be had")
    parser.add_argument(
        "--extra",
        action="append",
        metavar="PACKAGE",
        help="install this package in the targets that can have it, repeatable (default: "
        f"{', '.join(EXTRAS)}, for targets other than current)",
    )
    for option, metavar, help in (
        (
            "--clause",
            "ID",
            "only this clause, or all that begin with these words or match a pattern",
        ),
        ("--section", "NAME", "only the clauses of this section, as in errors"),
        ("--implementation", "NAME", "only legacy_pmap, new_pmap, shard_map or jax"),
        ("--topology", "NxD", "processes x devices per process: 1x8, 2x2, 4x2"),
    ):
        parser.add_argument(
            option, action="append", default=[], metavar=metavar, help=f"{help}, repeatable"
        )
    parser.add_argument(
        "--tier",
        choices=("core", "full"),
        help="core: every fact once under each implementation; full: every cell (default: core, "
        "or full with --clause)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FILE",
        help="write results there; an earlier file becomes FILE.bak (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="keep no earlier results file")
    parser.add_argument(
        "--site",
        type=Path,
        metavar="DIR",
        help=f"write the site there (default: {SITE}; none with --clause or --section)",
    )


def _run(chosen: argparse.Namespace) -> int:
    written = _stamp(chosen.results)
    status = _pytest(pytest_words(chosen))
    if status in (INTERRUPTED, FAILED):
        return status
    if _stamp(chosen.results) == written:
        report_progress(f"no cell was run, and nothing written to {chosen.results}")
        return status
    statuses = [status, *(_call(words) for words in reports_on(chosen))]
    if chosen.clause and _is_part(chosen):
        print(f"summary: {PROGRAM} results summary {chosen.results}")
    if _is_part(chosen):
        print(f"site: {PROGRAM} report site {chosen.results} -o {SITE}")
    else:
        print(f"site: {chosen.site or SITE}/index.html")
    return FAILED if FAILED in statuses else max(statuses)


def pytest_words(chosen: argparse.Namespace) -> list[str]:
    """Return the arguments of pytest; UsageError if a section does not exist."""
    timing = TIMING in chosen.section
    words = ["-c", os.devnull, "--rootdir", str(_root()), "-p", "harness.plugin"]
    # pytest would rewrite every module of an installed package, for asserts that it does not have.
    words += ["--assert=plain", "-p", "no:cacheprovider", "--tb=short", "-r", "fE"]
    # The time lane runs by itself: its figures would be those of a busy machine.
    words += ["-m", "benchmark"] if timing else ["-n", "auto", "-m", "section"]
    targets = chosen.target or list(TARGETS)
    extras = chosen.extra
    if extras is None:
        extras = [] if set(targets) == {"current"} else EXTRAS
    for option, values in (
        ("--target", targets),
        ("--extra", extras),
        ("--clause", chosen.clause),
        ("--implementation", chosen.implementation),
        ("--topology", chosen.topology),
    ):
        words += [f"{option}={value}" for value in values]
    if chosen.target is None:
        words.append("--skip-missing-targets")
    if chosen.tier:
        words += ["--tier", chosen.tier]
    words += ["--results", str(chosen.results.absolute())]
    words += ["--overwrite"] if chosen.overwrite else []
    return [*words, *chosen.passed, *_tests(chosen.section)]


def _tests(sections: Sequence[str]) -> Iterator[str]:
    from conformance.catalogue.spelling import did_you_mean
    from harness.suite import SECTIONS

    for one in sections:
        if one not in SECTIONS:
            meant = did_you_mean(one, SECTIONS) or f"; there are {', '.join(SECTIONS)}"
            raise UsageError(f"no section is called {one}{meant}")
        yield f"{_root() / SUITE}::test_{one}"
    if not sections:
        yield f"{_root() / SUITE}"


def _is_part(chosen: argparse.Namespace) -> bool:
    """Return whether only a part of the cells is selected, so that no site is built."""
    return chosen.site is None and bool(chosen.clause or chosen.section)


def reports_on(chosen: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the commands that follow a run; after one of whole sections, only its summary.

    Of a few clauses the run itself has said all: a summary is of the whole grid, here not run.
    """
    results = str(chosen.results)
    if _is_part(chosen):
        if not chosen.clause:
            yield ["results", "summary", results]
        return
    site = str(chosen.site or SITE)
    strength = str(chosen.results.with_name("strength.jsonl"))
    yield [
        *("results", "strength", results, "--sample", "1500", "--weakest", "10"),
        *("--fail-on", "below=0.99", "-o", strength),
    ]
    yield ["report", "agreement", results]
    yield ["report", "site", results, strength, "-o", site]
    yield ["results", "summary", results]


def _call(words: list[str]) -> int:
    from harness.commandline.main import main

    report_progress(" ".join(words))
    return main(words)


def _pytest(words: list[str]) -> int:
    """Run pytest, which ends its clusters itself on SIGINT; return our exit status."""
    import pytest

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        status = pytest.main(words)
    finally:
        signal.signal(signal.SIGTERM, before)
    known = {
        pytest.ExitCode.OK: DONE,
        pytest.ExitCode.TESTS_FAILED: FOUND,
        pytest.ExitCode.INTERRUPTED: INTERRUPTED,
    }
    return known.get(pytest.ExitCode(status), FAILED)


def _root() -> Path:
    """Return the folder that holds the package `harness`: a checkout, or site-packages."""
    return Path(__file__).parents[2]


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes when a file is written; None if it does not exist."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


ACTIONS = {"run": Action(_add, _run, passes_on=True)}
