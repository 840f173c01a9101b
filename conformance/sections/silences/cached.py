"""A program in its own process that reports a mapped function's lowered text, and whether its
compiled program was in the cache.

Started by `silences.default-name.*`; nothing here imports jax before the program starts.
"""

from __future__ import annotations

import hashlib
from typing import Any

from conformance.worker.child import serve

FLAG = "jax_pmap_shmap_merge"


def lowered(implementation: str, name: str, folder: str) -> dict[str, Any]:
    """Compile a mapped function of two rows with the cache in `folder`, under `name`, or by
    default.

    Return the text's hash, the values, and the number of cache hits for its program.
    """
    import jax
    import numpy as np

    if FLAG in jax.config.values:
        jax.config.update(FLAG, implementation == "new_pmap")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    function = jax.pmap(lambda x: x * 2, name) if name else jax.pmap(lambda x: x * 2)
    lowered = function.lower(np.ones((2, 3), np.float32))
    seen = {"hits": 0, "misses": 0}

    def count(event: str, **_: Any) -> None:
        for kind in seen:
            seen[kind] += event == f"/jax/compilation_cache/cache_{kind}"

    jax.monitoring.register_event_listener(count)
    lowered.compile()
    return seen | {"text": hashlib.sha256(lowered.as_text().encode()).hexdigest()}


if __name__ == "__main__":
    serve({"lowered": lowered})
