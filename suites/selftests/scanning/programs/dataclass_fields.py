import dataclasses
import jax

@dataclasses.dataclass
class Outputs:
    loss: jax.Array
    logits: jax.Array

step = jax.pmap(lambda x: Outputs(x.mean(), x))

def main(x):
    out = step(x)
    return out.loss[0]  # finds: index-replicates-the-row
