import dataclasses
from typing import Any

import jax


class Trainer:
    def __init__(self, name):
        try:
            self.step = jax.pmap(self.update)
        except RuntimeError:
            self.step = None
        setattr(self, "evaluate", jax.pmap(self.update))
        self.sizes = None

    def update(self, x):
        return x

    def run(self, x):
        print(self.step(x)[0])  # finds: index-replicates-the-row
        print(getattr(self, "evaluate")(x)[0])  # finds: index-replicates-the-row
        return self.evaluate(x)[0]  # finds: index-replicates-the-row


@dataclasses.dataclass
class Settings:
    scale: float
    step: Any = dataclasses.field(default_factory=lambda: jax.pmap(lambda x: x))


settings = Settings(2.0)


def main(x):
    return settings.step(x)[0]  # finds: index-replicates-the-row
