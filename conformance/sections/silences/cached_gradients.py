"""What a run of its own tells of the gradient of a map: whether its program was in a cache.

Started by `silences.retraces.two-runs-of-a-gradient`; nothing here imports jax before the program
starts.
"""

from __future__ import annotations

from typing import Any

from conformance.worker.child import serve


def gradient(folder: str) -> dict[str, int]:
    """Compile the gradient of a shard_map of two rows with the cache in `folder`.

    Return how often the cache had, and had not, a program while that one was compiled.
    """
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))

    def body(weights: Any, x: Any) -> Any:
        hidden = jax.numpy.tanh(x @ weights["in"])
        return jax.lax.psum((jax.numpy.sin(hidden) @ weights["out"]).sum(), "i")

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("i")), out_specs=P())
    weights = {"in": np.ones((3, 4), np.float32), "out": np.ones((4, 2), np.float32)}
    lowered = jax.jit(jax.grad(mapped)).lower(weights, np.ones((2, 3), np.float32))
    seen = {"hits": 0, "misses": 0}

    def count(event: str, **_: Any) -> None:
        for kind in seen:
            seen[kind] += event == f"/jax/compilation_cache/cache_{kind}"

    jax.monitoring.register_event_listener(count)
    lowered.compile()
    return seen


if __name__ == "__main__":
    serve({"gradient": gradient})
