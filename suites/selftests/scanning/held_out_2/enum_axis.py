"""Axis names are members of an enum, so that nobody mistypes them."""
import enum
import functools

import jax
import jax.numpy as jnp


class Axis(enum.Enum):
    DATA = "data"
    MODEL = "model"


class StrAxis(str, enum.Enum):
    DATA = "data"


DATA_AXIS = "data"


@functools.partial(jax.pmap, axis_name=Axis.DATA)  # finds: axis-name-must-be-text
def centred(x):
    return x - jax.lax.pmean(x, Axis.DATA)


@functools.partial(jax.pmap, axis_name=DATA_AXIS)
def scaled(x):
    return x / jax.lax.pmax(jnp.abs(x), DATA_AXIS)


def numbered(f):
    return jax.pmap(f, axis_name=0)  # finds: axis-name-misread


def vmapped(f):
    return jax.vmap(f, axis_name=Axis.MODEL)


def run(x):
    a = centred(x)
    b = scaled(x)
    c = numbered(lambda v: v + 1)(x)
    d = vmapped(lambda v: v - jax.lax.pmean(v, Axis.MODEL))(x)
    return a + b + c, d
