"""Named update functions in a dict, chosen by configuration."""
import argparse

import jax
import jax.numpy as jnp
import numpy as np


def sgd(params, grads, lr):
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


def sign_sgd(params, grads, lr):
    return jax.tree.map(lambda p, g: p - lr * jnp.sign(g), params, grads)


def make_step(rule, lr):
    def step(params, x):
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
        grads = jax.lax.pmean(grads, "i")
        return rule(params, grads, lr), jax.tree.map(jnp.linalg.norm, grads)

    return step


RULES = {"sgd": sgd, "sign": sign_sgd}
STEPS = {name: jax.pmap(make_step(rule, 0.1), axis_name="i") for name, rule in RULES.items()}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rule", choices=sorted(RULES), default="sgd")
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


def main():
    args = parse()
    n = jax.local_device_count()
    params = {"w": np.zeros((n, 4, 1), np.float32), "b": np.zeros((n, 1), np.float32)}
    data = np.ones((n, 16, 4), np.float32)
    step = STEPS[args.rule]
    for _ in range(args.steps):
        params, norms = step(params, data)  # finds: own-output-traced-again
    print({name: float(value[0]) for name, value in norms.items()})  # finds: index-replicates-the-row
    print(RULES["sgd"].__name__, sorted(STEPS)[0])


if __name__ == "__main__":
    main()
