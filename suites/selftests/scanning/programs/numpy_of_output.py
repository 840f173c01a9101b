import jax
import numpy as np

f = jax.pmap(lambda x: x.mean())

def main(x):
    return float(np.mean(f(x))), np.asarray(f(x)).shape
