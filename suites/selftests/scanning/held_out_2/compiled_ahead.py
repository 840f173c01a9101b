"""Compiles the step ahead of time, prints its cost, then trains with the compiled one."""
import jax
import jax.numpy as jnp
import numpy as np


def step(w, x):
    g = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * jax.lax.pmean(g, "i")


def compile_parallel(w, x):
    mapped = jax.pmap(step, axis_name="i")
    lowered = mapped.lower(w, x)
    print(lowered.as_text()[:200])
    compiled = lowered.compile()  # finds: compiled-stage-is-global
    return compiled


def compile_single(w, x):
    compiled = jax.jit(lambda w, x: x @ w).lower(w, x).compile()
    print(compiled.cost_analysis())
    return compiled


def main():
    n = jax.local_device_count()
    w = np.zeros((n, 4), np.float32)
    x = np.ones((n, 32, 4), np.float32)
    fast = compile_parallel(w, x)
    for _ in range(100):
        w = fast(w, x)  # finds: compiled-stage-is-global
    one = compile_single(w[0], x[0])  # finds: index-replicates-the-row
    print(one(np.ones(4, np.float32), x[0]))


if __name__ == "__main__":
    main()
