"""Curvature by Hutchinson's estimator over devices; gradients outside of the map."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import random

P_AXIS = "probe"


def hvp(f, w, v):
    return jax.jvp(jax.grad(f), (w,), (v,))[1]


def trace_probe(w, key, f):
    v = random.rademacher(key, w.shape, dtype=w.dtype)
    return jax.lax.pmean(jnp.vdot(v, hvp(f, w, v)), P_AXIS)


def build(f):
    return jax.pmap(lambda w, k: trace_probe(w, k, f), axis_name=P_AXIS, in_axes=(None, 0))


def regulariser(f, w, keys):
    probe = build(f)
    return jnp.mean(probe(w, keys))


def regularised_grad(f, w, keys):
    return jax.grad(lambda w: f(w) + 0.1 * regulariser(f, w, keys))(w)  # finds: transformed-map-spans-one-process


def main(f, w):
    keys = random.split(random.PRNGKey(0), jax.local_device_count())
    trace = build(f)(w, keys)
    print(float(trace[0]), keys[0])  # finds: index-replicates-the-row
    return regularised_grad(f, w, keys)
