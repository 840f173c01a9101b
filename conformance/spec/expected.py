"""The interface of an expectation: its text and its check.

The expectations are defined in `conformance.judging`; declaring a clause needs only this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from conformance.spec.topology import Topology


class Expectation(Protocol):
    """What a clause expects of one implementation."""

    @property
    def text(self) -> str:
        """The expectation in words, for reports and messages."""

    def check(self, topology: Topology, observations: Sequence[Any]) -> list[Any]:
        """Compare, returning at least one finding per observation: otherwise the cell proves
        nothing.
        """
