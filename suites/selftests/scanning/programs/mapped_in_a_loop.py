import functools

import jax


class Trainer:
    def __init__(self):
        self.rate = 1.0

    def step(self, w):
        return w * self.rate

    def train(self, w):
        for _ in range(3):
            self.rate *= 0.5
            w = jax.pmap(self.step, axis_name="i")(w)  # finds: method-mapped-again-is-stale, calls-run-python, own-output-traced-again
        return w


def anew(w, scale):
    for k in range(3):
        w = jax.pmap(lambda x: x * scale)(w)  # finds: mapped-functions-never-freed
        w = jax.pmap(functools.partial(scaled, k))(w)  # finds: mapped-functions-never-freed
    return w


def scaled(k, x):
    return k * x


def table(bodies):
    found = {}
    for name, body in bodies.items():
        found[name] = jax.pmap(functools.partial(body, 1))
    return found
