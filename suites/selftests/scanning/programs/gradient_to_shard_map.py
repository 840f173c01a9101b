# from new_pmap@0.12.0.1 to shard_map@0.12.0.1
import jax

def loss(w, x):
    return ((x @ w) ** 2).mean()

@jax.pmap  # finds: body-keeps-the-mapped-axis
def step(w, x):
    value, grads = jax.value_and_grad(loss)(w, x)  # finds: check-vma-sums-gradients
    return grads
