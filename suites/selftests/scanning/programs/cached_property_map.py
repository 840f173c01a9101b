import functools

import jax


class Layer:
    @functools.cached_property
    def mapped(self):
        return jax.pmap(self.apply, axis_name="i")

    def apply(self, x):
        return jax.lax.psum(x, "i")

    def __call__(self, x):
        return self.mapped(x)


def main(x):
    print(Layer()(x)[0])  # finds: index-replicates-the-row
