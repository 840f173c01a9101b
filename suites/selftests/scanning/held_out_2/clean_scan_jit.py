"""lax.scan, vmap with axis names, and remat: all in one jit."""
import functools

import jax
import jax.numpy as jnp
from jax import lax


@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable)
def layer(x, w):
    return jnp.tanh(x @ w)


def forward(ws, x):
    x, ys = lax.scan(lambda c, w: (layer(c, w),) * 2, x, ws)
    return x, ys


def loss(ws, x):
    y, hidden = forward(ws, x)
    return jnp.mean(y ** 2), hidden


@functools.partial(jax.jit, donate_argnums=(0,))
def update(ws, x):
    def per_group(x):
        grads, hidden = jax.grad(loss, has_aux=True)(ws, x)
        return lax.pmean(grads, "group"), hidden

    grads, hidden = jax.vmap(per_group, axis_name="group", out_axes=(None, 0))(x)
    return ws - 0.1 * grads, hidden


def main():
    ws = jnp.zeros((3, 8, 8))
    x = jnp.ones((4, 16, 8))
    for _ in range(5):
        ws, hidden = update(ws, x)
    print(ws[0], hidden[1:], hidden[:, -1])
    for h in hidden:
        print(h.shape)
    compiled = update.lower(ws, x).compile()
    print(compiled.memory_analysis())
