"""flax.struct dataclass as the state, with EMA weights and dynamic loss scale."""
from typing import Any

import flax
import jax
import jax.numpy as jnp
import optax
from flax import jax_utils, struct


@struct.dataclass
class State:
    step: int
    params: Any
    ema: Any
    opt_state: optax.OptState
    tx: optax.GradientTransformation = struct.field(pytree_node=False)

    def advance(self, grads, decay=0.999):
        updates, opt_state = self.tx.update(grads, self.opt_state, self.params)
        params = optax.apply_updates(self.params, updates)
        ema = jax.tree.map(lambda e, p: decay * e + (1 - decay) * p, self.ema, params)
        return self.replace(step=self.step + 1, params=params, ema=ema, opt_state=opt_state)


def step(state, batch):
    def loss_fn(params):
        return jnp.mean((batch["x"] @ params["w"] - batch["y"]) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    grads = jax.lax.pmean(grads, axis_name="batch")
    return state.advance(grads), {"loss": jax.lax.pmean(loss, "batch")}


p_step = jax.pmap(step, axis_name="batch", donate_argnums=(0,))


def run(batches, params, tx):
    state = State(0, params, params, tx.init(params), tx)
    state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
    for batch in batches:
        state, metrics = p_step(state, batch)  # finds: own-output-traced-again
        if int(state.step[0]) % 100 == 0:  # finds: index-replicates-the-row
            print(metrics["loss"].mean())
    ema = jax.tree.map(lambda leaf: leaf[0], state.ema)  # finds: index-replicates-the-row
    return flax.serialization.to_bytes(ema)
