import jax
from jax import lax

step = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")


def either(ready, x):
    return lax.cond(ready, step, lambda y: y, x)  # finds: transformed-map-spans-one-process


def one_of(at, x):
    return lax.switch(at, [lambda y: y, step], x)  # finds: transformed-map-spans-one-process


def by_keyword(x):
    def body(_, y):
        return step(y)  # finds: transformed-map-spans-one-process

    return lax.fori_loop(0, 3, body_fun=body, init_val=x)
