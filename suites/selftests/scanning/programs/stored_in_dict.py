import jax

functions = {"train": jax.pmap(lambda x: x + 1), "plain": jax.jit(lambda x: x)}

def main(x):
    return functions["train"](x)[0], functions["plain"](x)[0]  # finds: index-replicates-the-row
