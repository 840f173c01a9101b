"""Odds and ends of an older library."""
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint as ad_checkpoint  # finds: public-names-removed
from jax.ad_checkpoint import checkpoint_name
from jax import core
from jax.interpreters import pxla
from jax.scipy.special import sph_harm_y


def clip(x, low, high):
    return jnp.clip(x, a_min=low, a_max=high)  # finds: public-names-removed


def clip_new(x, low, high):
    return jnp.clip(x, min=low, max=high)


def truncated(x):
    return jnp.fix(x)  # finds: public-names-removed


def is_array(x):
    return isinstance(x, jax.Array) or core.valid_jaxtype(x)  # finds: public-names-removed


def varying(x, name):
    return jax.lax.pvary(x, name)  # finds: public-names-removed


def varying_either(x, name):
    if hasattr(jax.lax, "pvary"):
        return jax.lax.pvary(x, name)
    return jax.lax.pcast(x, name, to="varying")


def sharded(x, spec):
    return pxla.ShardingSpec(*spec), x  # finds: public-names-removed


@ad_checkpoint
def block(x):
    return checkpoint_name(jnp.sin(x), "sin")


def harmonics(n, m, theta, phi):
    return sph_harm_y(n, m, theta, phi)
