"""Maps that are made once and called again, as a user keeps a wrapper. Runs in the worker.

A wrapper's second call may take another path than its first, C++ in place of Python: a repeated
program that makes its maps anew shows first calls alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class KeptMaps:
    """An implementation that makes each map of a repeated program once, told by their order."""

    def __init__(self, impl: Any) -> None:
        self._impl = impl
        self._made: list[Any] = []
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._impl, name)

    def map(self, body: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return the implementation's map of `body`, or what the first run made in this place."""
        if self._next == len(self._made):
            self._made.append(self._impl.map(body, *args, **options))
        self._next += 1
        return self._made[self._next - 1]

    def restart(self) -> None:
        """Begin another run of the program: the next map is the first one again."""
        self._next = 0


def keep_maps(impl: Any, program: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return `program` of an implementation, for repeated calls that share their maps."""
    kept = KeptMaps(impl)

    def run() -> Any:
        kept.restart()
        return program(kept)

    return run
