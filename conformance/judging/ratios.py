"""Medians, ratios and spreads of durations; pure functions.

Contenders are measured in alternating blocks, so that a drift of the machine affects all of them: a
ratio is taken within each block, and the blocks' ratios give its spread.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

Blocks = Sequence[Sequence[float]]  # seconds of each round, block by block


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the range around it, over all rounds or over the blocks."""

    median: float
    low: float
    high: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Spread:
        """Return median and quartiles; ValueError if there are no values."""
        if not values:
            raise ValueError("nothing was measured")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(statistics.median(values), low, high)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times longer one contender takes than another: median, minimum and maximum of the
    blocks.
    """

    to: str
    median: float
    low: float
    high: float
    blocks: int
    rounds: int

    @property
    def hidden(self) -> bool:
        """Return whether the spread leaves open which of the two is faster."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        measured = (
            f"{self.low:.2g} to {self.high:.2g} times, {self.blocks} blocks of {self.rounds} rounds"
        )
        if self.hidden:
            return f"no difference from {self.to} beyond the spread ({measured})"
        if self.median < 1:
            return f"{1 / self.median:.2g} times faster than {self.to} ({measured})"
        return f"{self.median:.2g} times {self.to} ({measured})"


def ratio(measured: Blocks, reference: Blocks, name: str) -> Ratio:
    """Return the ratio, block by block, to `reference`, which is `name`; ValueError if uneven."""
    if len(measured) != len(reference) or not measured:
        raise ValueError(f"{len(measured)} blocks cannot be compared with {len(reference)}")
    pairs = [
        statistics.median(a) / statistics.median(b)
        for a, b in zip(measured, reference, strict=True)
    ]
    return Ratio(
        name, statistics.median(pairs), min(pairs), max(pairs), len(pairs), min(map(len, measured))
    )


def slowest(by_process: Sequence[Sequence[float]]) -> list[float]:
    """Return each round's seconds in the slowest process, which is what a user waits for."""
    return [max(one) for one in zip(*by_process, strict=True)]


def seconds(blocks: Blocks) -> Mapping[str, float]:
    """Return median and quartiles over all rounds of all blocks."""
    return asdict(Spread.from_values([one for block in blocks for one in block]))
