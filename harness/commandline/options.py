"""Options that several commands share, with the same word for the same thing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from conformance.store.outputs import named, written
from harness.commandline.command import UsageError

RESULTS = ("*.jsonl", "*.jsonl.xz")  # what is read of a folder; not what a run keeps beside them
TEXT, JSON, MARKDOWN = "text", "json", "markdown"
SIDE = "IMPLEMENTATION@JAX"
DEFAULT_SIDE = "[IMPLEMENTATION@]JAX"
OF_DEFAULT = "without an implementation: what jax.pmap is in that version by default"
NONE = "none"  # of --fail-on


def add_results(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare the results files that a command reads."""
    parser.add_argument(
        "files",
        metavar="RESULTS",
        type=Path,
        nargs="+" if required else "*",
        help="results files (.jsonl, .jsonl.xz), or folders of them; later ones win",
    )


def add_output(
    parser: argparse.ArgumentParser,
    help: str,
    *,
    metavar: str = "FILE",
    required: bool = False,
) -> None:
    """Declare where a command writes."""
    parser.add_argument("-o", "--output", metavar=metavar, type=Path, required=required, help=help)


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Declare the formats in which a command prints; the first is the default."""
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help="default: %(default)s"
    )


def add_fail_on(parser: argparse.ArgumentParser, known: Sequence[str], default: str = NONE) -> None:
    """Declare what makes a command exit with 1."""
    parser.add_argument(
        "--fail-on",
        metavar="POLICY,...",
        help=f"exit 1 if there are any: {', '.join(known)}; or {NONE} (default: {default})",
    )


def add_targets(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare the JAX builds that a command runs."""
    parser.add_argument(
        "--target",
        action="append",
        metavar="SPEC",
        help="JAX to run: jax==0.9.0, jax==0.8.3+flax==0.12.0 (with that flax), newest, nightly, "
        "all (every release from 0.7.0 on), current, or a path of Python; repeatable "
        f"(default: {default})",
    )


def add_extras(parser: argparse.ArgumentParser) -> None:
    """Declare the packages that are installed beside JAX in the targets."""
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="install this package in the targets that can have it, repeatable: flax, equinox",
    )


def expand(files: Iterable[Path]) -> list[Path]:
    """Return the files, each folder replaced by the results files in it that are not hidden."""
    found: list[Path] = []
    for file in files:
        within = {one for pattern in RESULTS for one in file.glob(pattern)}
        found += sorted(one for one in within if not one.name.startswith(".")) or [file]
    return found


def whole_side(text: str) -> str:
    """Return `IMPLEMENTATION@JAX` of a side; of a version alone, with what jax.pmap is in it."""
    from reports.store.order import default_implementation

    return f"{default_implementation(text)}@{text}" if text[:1].isdigit() else text


def parse_side(text: str, option: str) -> tuple[str, str]:
    """Return implementation and JAX of `IMPLEMENTATION@JAX`; UsageError names the syntax."""
    implementation, _, jax = text.partition("@")
    if not implementation or not jax:
        raise UsageError(f"{option} {text}: write {SIDE}, as in new_pmap@0.9.0")
    return implementation, jax


def write_records(file: Path, records: Iterable[object]) -> None:
    """Write records as JSON Lines, whole or not at all; OSError names the file."""
    # Imported here: an agent's host has no msgspec.
    from conformance.model.codec import encode_json

    with written(file) as stream, named(file):
        stream.writelines(encode_json(one) + b"\n" for one in records)
