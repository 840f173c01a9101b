from collections.abc import Callable
from dataclasses import dataclass

import jax


@dataclass
class Distiller:
    teacher: Callable
    axis: str = "b"

    def __post_init__(self):
        self.mapped = jax.pmap(self.teacher, axis_name=self.axis)

    def soft(self, x):
        return self.mapped(x)


def main(f, x):
    d = Distiller(f)
    return d.soft(x)[0]  # finds: index-replicates-the-row
