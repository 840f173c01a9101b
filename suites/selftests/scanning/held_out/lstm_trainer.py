import dataclasses
import jax
import jax.numpy as jnp
import numpy as np
from flax import jax_utils


@dataclasses.dataclass
class Trainer:
    model: object
    tx: object
    axis: str = "b"

    def __post_init__(self):
        self.p_step = jax.pmap(self._step, axis_name=self.axis, donate_argnums=(0,))

    def _step(self, state, batch):
        return state, {"loss": jnp.mean(batch)}

    def fit(self, state, loader):
        state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
        for batch in loader:
            state, metrics = self.p_step(state, batch)  # finds: own-output-traced-again
            self.log(metrics)
        return jax_utils.unreplicate(state)  # finds: unreplicated-onto-one-device

    def log(self, metrics):
        values = {k: np.asarray(v)[0] for k, v in metrics.items()}
        print(values)
