"""What a clause expects of one implementation, as the catalogue knows it: words and a check.

The expectations themselves are `conformance.judging`'s; this is all that declaring one needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from conformance.catalogue.topology import Topology


class Expectation(Protocol):
    """Something that a clause expects of one implementation."""

    @property
    def text(self) -> str:
        """The expectation in words, for reports and messages."""

    def check(self, topology: Topology, observations: Sequence[Any]) -> list[Any]:
        """Compare; at least one finding per observation, or the cell proves nothing."""
