"""Which programs JAX compiled during a call, eager operations included. Runs in the worker.

The runtime lists its live executables; those that were not there before are the call's. So an
`x[0]` that never passes through a `jit` of the user's is seen as exactly as one that does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from conformance import hlo

_MEMORY = ("argument", "output", "alias", "temp")


def compiled_by(function: Callable[[], Any]) -> tuple[Any, list[dict[str, Any]]]:
    """Call `function` with empty caches: its result, and one record per program it compiled.

    A record has the program's `name`, its `collectives` (operation, shape, bytes on one device) and
    `memory`: the bytes of arguments, outputs, outputs aliased to arguments, and temporaries on one
    device. What `function` raises is raised.
    """
    client = jax.local_devices()[0].client
    jax.clear_caches()
    before = client.live_executables()  # kept, so that no identity is given to another object
    known = {id(one) for one in before}
    result = jax.block_until_ready(function())
    fresh = [one for one in client.live_executables() if id(one) not in known]
    return result, [_record(one) for one in reversed(fresh)]


def _record(executable: Any) -> dict[str, Any]:
    modules = executable.hlo_modules()
    stats = executable.get_compiled_memory_stats()
    return {
        "name": modules[0].name if modules else "",
        "collectives": [
            dataclasses.asdict(one)
            for module in modules
            for one in hlo.collectives(module.to_string())
        ],
        "memory": {kind: int(getattr(stats, f"{kind}_size_in_bytes")) for kind in _MEMORY},
    }
