import equinox as eqx
import jax
from flax import nnx

energy = eqx.filter_pmap(lambda w, x: w * x, in_axes=(None, 0))
forward = nnx.pmap(lambda x: x * 2)


def loss(w, x):
    return energy(w, x).mean()  # finds: gradient-stays-in-the-process


def train(w, x):
    return eqx.filter_value_and_grad(loss)(w, x)


@nnx.jit
def apply(x):
    return forward(x)  # finds: psum-under-jit-spans-one-process


def first(x):
    return forward(x)[0]  # finds: index-replicates-the-row
