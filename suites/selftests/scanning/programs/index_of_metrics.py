import functools
import jax
from jax import lax, numpy as jnp

@functools.partial(jax.pmap, axis_name="batch")
def train_step(params, batch):
    grads = jax.tree.map(jnp.ones_like, params)
    grads = lax.pmean(grads, "batch")
    return params, {"loss": lax.pmean(batch.sum(), "batch"), "norm": batch.max()}

def fit(params, batches):
    for batch in batches:
        params, metrics = train_step(params, batch)  # finds: own-output-traced-again
    return params, metrics["loss"][0]  # finds: index-replicates-the-row
