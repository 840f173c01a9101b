"""Import shard_map from its old module in a new Python, because a module warns only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.worker.child import serve


def imported_twice() -> str:
    """Import jax.experimental.shard_map's function twice; return its name."""
    from jax.experimental.shard_map import shard_map
    from jax.experimental.shard_map import shard_map as again

    assert again is shard_map
    return str(shard_map.__name__)


PROGRAMS: dict[str, Callable[..., Any]] = {"imported-twice": imported_twice}


if __name__ == "__main__":
    serve(PROGRAMS)
