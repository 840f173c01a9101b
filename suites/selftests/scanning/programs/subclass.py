import jax

class Base:
    def __init__(self):
        self.step = jax.pmap(self.body)

    def body(self, x):
        return x.sum()

class Derived(Base):
    def run(self, x):
        return self.step(x)[0]  # finds: index-replicates-the-row
