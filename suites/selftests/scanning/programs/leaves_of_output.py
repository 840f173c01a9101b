import jax

step = jax.pmap(lambda batch: {"a": batch, "b": batch})

def main(batch):
    out = step(batch)
    for leaf in jax.tree.leaves(out):
        print(leaf.shape)
    for name, value in out.items():
        print(name, value.dtype)
