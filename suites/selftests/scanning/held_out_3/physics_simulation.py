"""Ensemble simulation; each device integrates some members."""
import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state
    return jnp.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


@functools.partial(jax.pmap, in_axes=(0, None), static_broadcasted_argnums=1)
def integrate(state, steps):
    def body(s, _):
        s = s + 0.01 * jax.vmap(lorenz)(s)
        return s, s.mean(0)

    return jax.lax.scan(body, state, None, length=steps)


class Ensemble:
    def __init__(self, members):
        n = jax.local_device_count()
        rng = np.random.default_rng(0)
        self.state = rng.standard_normal((n, members // n, 3)).astype(np.float32)
        self.track = []

    def advance(self, steps):
        self.state, mean = integrate(self.state, steps)  # finds: own-output-traced-again
        self.track.append(mean)

    def spread(self):
        return jnp.std(self.state, axis=(0, 1))

    def member(self, i, j):
        return self.state[i, j]  # finds: index-replicates-the-row

    def save(self, path):
        np.savez(path, state=np.asarray(self.state), track=np.stack([np.asarray(t) for t in self.track]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--chunks", type=int, default=10)
    args = parser.parse_args()
    ensemble = Ensemble(args.members)
    for _ in range(args.chunks):
        ensemble.advance(100)
    print(ensemble.spread(), ensemble.member(0, 0), ensemble.track[0].shape)


if __name__ == "__main__":
    main()
