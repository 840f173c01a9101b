import jax
import numpy as np

sample = jax.pmap(lambda x: x * 2)


def kept(x, burn):
    draws = sample(x)
    some = draws[:, burn:]  # finds: results-stay-on-all-devices
    first = draws[:, 0]  # finds: results-stay-on-all-devices
    return some, first


def nothing_moves(x):
    draws = sample(x)
    return draws[:], draws[:, None], draws[:, np.newaxis], draws[:, :], np.asarray(draws)[:, 1:]
