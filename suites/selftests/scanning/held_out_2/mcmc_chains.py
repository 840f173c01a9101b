"""Random-walk Metropolis on all devices, several chains on each."""
import argparse

import jax
import jax.numpy as jnp
from jax import random


def log_density(x):
    return -0.5 * jnp.sum(x ** 2)


def kernel(key, x, scale):
    k1, k2 = random.split(key)
    proposal = x + scale * random.normal(k1, x.shape)
    accept = jnp.log(random.uniform(k2)) < log_density(proposal) - log_density(x)
    return jnp.where(accept, proposal, x), accept


def chain(key, x, scale, num_samples):
    def body(x, key):
        x, accepted = kernel(key, x, scale)
        return x, (x, accepted)

    _, (samples, accepted) = jax.lax.scan(body, x, random.split(key, num_samples))
    return samples, accepted.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--num-samples", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=2)
    args = parser.parse_args()
    chains = jax.local_device_count()
    keys = random.split(random.PRNGKey(0), chains)
    init = random.normal(random.PRNGKey(1), (chains, args.dim))
    run = jax.pmap(chain, in_axes=(0, 0, None, None), static_broadcasted_argnums=3)
    samples, rate = run(keys, init, 0.5, args.num_samples)
    print("acceptance", rate)
    for i, r in enumerate(rate):  # finds: iteration-goes-through-the-host
        print("chain", i, float(r))
    warm = samples[:, args.num_samples // 2:]  # finds: results-stay-on-all-devices
    print("mean", warm.mean((0, 1)), "shape", samples.shape)
    print("first chain", samples[0].mean(0))  # finds: index-replicates-the-row
    print("keys", keys[0], "init", init[:2])


if __name__ == "__main__":
    main()
