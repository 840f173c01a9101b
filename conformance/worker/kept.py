"""Maps that are made once and called again, as a user keeps a wrapper. Runs in the worker.

A wrapper's second call may take another path than its first, C++ in place of Python: a repeated
program that makes new maps shows first calls only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class KeptMaps:
    """An implementation that makes each map of a repeated program once, by order of creation."""

    def __init__(self, impl: Any) -> None:
        self._impl = impl
        self._made: list[Any] = []
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._impl, name)

    def map(self, *args: Any, **options: Any) -> Any:
        """Return the implementation's map, or what an earlier run made in its place."""
        return self._keep(lambda: self._impl.map(*args, **options))

    def adopt(self, *args: Any, **options: Any) -> Any:
        """Return the adopted function, or what an earlier run adopted in its place."""
        return self._keep(lambda: self._impl.adopt(*args, **options))

    def restart(self) -> None:
        """Begin another run of the program: the next map is the first one again."""
        self._next = 0

    def _keep(self, make: Callable[[], Any]) -> Any:
        if self._next == len(self._made):
            self._made.append(make())
        self._next += 1
        return self._made[self._next - 1]


def keep_maps(impl: Any, program: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return `program`, a function of an implementation, for repeated calls that share its maps."""
    kept = KeptMaps(impl)

    def run() -> Any:
        kept.restart()
        return program(kept)

    return run
