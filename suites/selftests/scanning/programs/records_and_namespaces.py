import collections
import types
from collections import OrderedDict, defaultdict, namedtuple

import jax
import jax.numpy as jnp

Steps = namedtuple("Steps", "train evaluate")
Loop = collections.namedtuple("Loop", ["body", "end"])
steps = Steps(jax.pmap(jnp.sin), evaluate=jax.pmap(jnp.cos))
loop = Loop(body=jax.pmap(jnp.sin), end=jnp.sum)
space = types.SimpleNamespace(step=jax.pmap(jnp.sin), scale=2)
ordered = OrderedDict(step=jax.pmap(jnp.sin))
made = defaultdict(lambda: jax.pmap(jnp.sin))
table = {"sin": jax.pmap(jnp.sin)}
table.update(cos=jax.pmap(jnp.cos))


def main(x):
    _, evaluate = steps
    print(steps.train(x)[0])  # finds: index-replicates-the-row
    print(evaluate(x)[0])  # finds: index-replicates-the-row
    print(loop.body(x)[0])  # finds: index-replicates-the-row
    print(loop.end(x)[0])
    print(space.step(x)[0])  # finds: index-replicates-the-row
    print(ordered["step"](x)[0])  # finds: index-replicates-the-row
    print(made["any"](x)[0])  # finds: index-replicates-the-row
    print(table["cos"](x)[0])  # finds: index-replicates-the-row
    options = {"axis_name": "i"}
    options.update(donate_argnums=0)
    jax.pmap(jnp.sin, **options)(x)
    return x + 1  # finds: deleted-argument-other-error
