"""Find the release in which an observation changes, by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


class BisectError(ValueError):
    """There is nothing to bisect; the message says why."""


@dataclass(frozen=True, slots=True)
class Bisected(Generic[T]):
    """The last release that equals the first one, and the next; `changed` is None if all are equal.

    `observed` has what every release that was run showed; `skipped` maps those in between that
    could not be run to the reason.
    """

    last_same: str
    changed: str | None
    observed: dict[str, T] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class Unobservable(Exception):
    """A release that could not be run; the text says why."""


def bisect(
    releases: Sequence[str],
    observe: Callable[[str], T],
    same: Callable[[T, T], bool],
    progress: Callable[[str], None] = lambda _: None,
) -> Bisected[T]:
    """Return between which two of `releases`, in their order, the observation changes.

    `observe` raises Unobservable for a release that cannot be run; BisectError if that is the first
    or the last. Of several changes one is found.
    """
    if len(releases) < 2:
        raise BisectError("there are fewer than two releases between --from and --to")
    seen: dict[str, T] = {}
    skipped: dict[str, str] = {}
    for end in (releases[0], releases[-1]):
        try:
            seen[end] = observe(end)
        except Unobservable as why:
            raise BisectError(f"jax {end} could not be run: {why}") from why
    first = seen[releases[0]]
    if same(first, seen[releases[-1]]):
        return Bisected(releases[-1], None, seen)
    low, high = 0, len(releases) - 1
    while (middle := _middle(releases, low, high, skipped)) is not None:
        name = releases[middle]
        try:
            seen[name] = observe(name)
        except Unobservable as why:
            skipped[name] = str(why)
            progress(f"jax {name} cannot be run and is left out: {why}")
            continue
        is_same = same(first, seen[name])
        progress(f"jax {name}: {'the same as' if is_same else 'differs from'} jax {releases[0]}")
        low, high = (middle, high) if is_same else (low, middle)
    between = {one: why for one, why in skipped.items() if one in releases[low:high]}
    return Bisected(releases[low], releases[high], seen, between)


def _middle(releases: Sequence[str], low: int, high: int, skipped: dict[str, str]) -> int | None:
    """Return the release nearest to the middle that was not skipped; None if there is none."""
    half = (low + high) // 2
    return next((one for one in _outwards(low, half, high) if releases[one] not in skipped), None)


def _outwards(low: int, half: int, high: int) -> Iterator[int]:
    yield from sorted(range(low + 1, high), key=lambda one: abs(one - half))
