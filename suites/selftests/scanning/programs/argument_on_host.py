import jax
import numpy as np

step = jax.pmap(lambda x: x * 2)

def main(x):
    return step(np.asarray(x))
