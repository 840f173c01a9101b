import jax


def draw(key):
    return jax.random.normal(key, (2,))


def draw_twice(key):
    return jax.random.normal(key) + jax.random.uniform(key)


def draw_folded(key):
    return draw(jax.random.fold_in(key, 5))


with jax.debug_key_reuse(True):
    for body in (draw, draw_twice, draw_folded):
        mapped = jax.pmap(body, "i")
        keys = jax.random.split(jax.random.key(0), jax.local_device_count())
        for call in ("first call", "second call"):
            try:
                print(body.__name__, call, mapped(keys).shape)
            except Exception as error:
                print(body.__name__, call, type(error).__name__)
