"""The public names of JAX releases, listed and looked up in a target's Python of each.

What is run there stands in `conformance/worker/public_names.py`. Which names went away is worked
out from what it answers, in `reports/analysis/public_names.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.running.answering import answer
from harness.targets.target import provision

MODULE = "conformance.worker.public_names"
# Some public modules import what JAX does not require; with these, all but a few can be imported.
BESIDE = ("absl-py", "chex", "equinox", "flax")

Name = tuple[str, str, str]


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
        listings.append(answer(target, MODULE, []))
    names = sorted({tuple(name) for one in listings for name in one["names"]})
    found = []
    for target, listed in zip(targets, listings, strict=True):
        progress(f"looking up {len(names)} names in {target.spec}")
        looked = map(tuple, answer(target, MODULE, names))
        answers = dict(zip(names, looked, strict=True))
        found.append(Release(listed["jax"], listed["same"], listed["failed"], answers))
    return found
