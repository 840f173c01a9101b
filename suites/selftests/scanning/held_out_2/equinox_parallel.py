"""equinox: filtered transformations, one of them parallel."""
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


class Net(eqx.Module):
    layers: list
    bias: jax.Array

    def __init__(self, key):
        k1, k2 = jr.split(key)
        self.layers = [eqx.nn.Linear(4, 16, key=k1), eqx.nn.Linear(16, 1, key=k2)]
        self.bias = jnp.zeros(1)

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x) + self.bias


@eqx.filter_value_and_grad
def loss_fn(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_pmap(in_axes=(None, None, 0, 0), axis_name="d")
def step(model, opt_state, x, y):
    loss, grads = loss_fn(model, x, y)
    grads = jax.lax.pmean(grads, "d")
    return loss, grads


@eqx.filter_jit
def single(model, x, y):
    return loss_fn(model, x, y)


def main(data, key):
    model = Net(key)
    optim = optax.adam(1e-3)
    opt_state = optim.init(eqx.filter(model, eqx.is_array))
    for x, y in data:
        loss, grads = step(model, opt_state, x, y)  # finds: calls-run-python
        grads = jax.tree.map(lambda g: g[0], grads)  # finds: index-replicates-the-row
        updates, opt_state = optim.update(grads, opt_state)
        model = eqx.apply_updates(model, updates)
    value, _ = single(model, x[0], y[0])
    print(value, model.layers[0].weight[0])
