import jax

f = jax.pmap(jax.vmap(lambda x: x + 1))
g = jax.pmap(jax.jit(lambda x: x * 2))
