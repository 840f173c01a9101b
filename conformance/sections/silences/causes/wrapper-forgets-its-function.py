import inspect

import jax


def named(x, *, y=2.0):
    """Documented."""
    return x * y


mapped = jax.pmap(named)
print(mapped.__name__, mapped.__doc__, inspect.signature(mapped), hasattr(mapped, "__wrapped__"))
