"""A compiled stage as a mapped function that can be called."""

from __future__ import annotations

from typing import Any

from conformance.worker.implementations import wrapper_kind
from conformance.worker.protocols import Implementation


class Staged:
    """The compiled stage of a mapped function, lowered on its first call."""

    def __init__(self, impl: Implementation, function: Any, *lowered_for: Any) -> None:
        self._impl, self._function, self._lowered_for = impl, function, lowered_for
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            compiled = self._function.lower(*self._lowered_for).compile()
            kind = None if self._impl.is_pmap else "jit(shard_map)"
            kind = kind or wrapper_kind(self._function.function)
            self._compiled = self._impl.adopt(compiled, kind)
        return self._compiled(*args)
