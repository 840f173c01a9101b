"""Moving averages on the host of device metrics."""
import math

import jax
import jax.numpy as jnp
import numpy as np


class Meter:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.value = math.nan

    def update(self, x):
        x = float(x)
        self.value = x if math.isnan(self.value) else self.decay * self.value + (1 - self.decay) * x
        return self.value


class Meters(dict):
    def __missing__(self, key):
        self[key] = Meter()
        return self[key]

    def update_all(self, metrics):
        return {name: self[name].update(value[0]) for name, value in metrics.items()}  # finds: index-replicates-the-row


@jax.pmap
def metrics_of(x):
    return {"mean": x.mean(), "std": x.std()}


def main(xs):
    meters = Meters()
    for x in xs:
        print(meters.update_all(metrics_of(x)))  # finds: calls-run-python
    values = jax.device_get(metrics_of(xs[0]))
    return values["mean"][0], {k: m.value for k, m in meters.items()}
