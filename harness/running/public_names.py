"""The public names of JAX releases, listed and looked up in a target's Python of each.

What is run there stands in `conformance/probing/public_names.py`. Which names went away is worked
out from what it answers, in `reports/public_names.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.targets.target import Target, provision, worker_environment

MODULE = "conformance.probing.public_names"
DEADLINE_S = 900.0
MOST_SAID = 600  # characters of what a program said that failed
# Some public modules import what JAX does not require; with these, all but a few can be imported.
BESIDE = ("absl-py", "chex", "equinox", "flax")

Name = tuple[str, str, str]


class NamesError(ValueError):
    """A release could not be listed; what was said, and what to do."""


class Release(NamedTuple):
    """What a release has, and what it does with each name that any of them has."""

    jax: str
    same: Sequence[Sequence[str]]
    failed: Mapping[str, str]
    looked: Mapping[Name, tuple[str, str, str]]


def look_up(specs: Sequence[str], *, progress: Callable[[str], None]) -> list[Release]:
    """Provision the targets and look up in each of them every name that any of them lists."""
    targets = [provision(one, extras=BESIDE, progress=progress) for one in specs]
    listings = []
    for target in targets:
        progress(f"listing the public names of {target.spec}")
        listings.append(_answer(target))
    names = sorted({tuple(name) for one in listings for name in one["names"]})
    found = []
    for target, listed in zip(targets, listings, strict=True):
        progress(f"looking up {len(names)} names in {target.spec}")
        looked = map(tuple, _answer(target, names))
        answers = dict(zip(names, looked, strict=True))
        found.append(Release(listed["jax"], listed["same"], listed["failed"], answers))
    return found


def _answer(target: Target, asked: Sequence[Name] = ()) -> Any:
    with tempfile.TemporaryDirectory(prefix="conformance-names-") as folder:
        output, names = Path(folder) / "answer.json", Path(folder) / "asked.json"
        names.write_text(json.dumps(asked), "utf-8")
        command: list[str | Path] = [
            target.python,
            "-m",
            MODULE,
            output,
            *([names] if asked else []),
        ]
        try:
            done = subprocess.run(
                command,
                env=worker_environment(target, os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NamesError(
                f"{target.spec} was not done with its public names after {DEADLINE_S:.0f} s: run "
                "it when the machine has less to do"
            ) from error
        if done.returncode:
            raise NamesError(
                f"{target.spec} ended with status {done.returncode} while its public names were "
                f"listed. Its last output: {done.stderr.strip()[-MOST_SAID:] or '(none)'}"
            )
        return json.loads(output.read_text("utf-8"))
