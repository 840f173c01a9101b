# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import functools
import time

import jax


def timed(f):
    mapped = jax.pmap(f, donate_argnums=0)

    @functools.wraps(f)
    def call(*args):
        start = time.time()
        out = mapped(*args)
        print(time.time() - start)
        return out

    return call


@timed
def accumulate(total, x):
    return total + x


def main(total, x):
    new = accumulate(total, x)
    print(total.sum())  # finds: deleted-argument-other-error
    total = new
    return total
