import jax

def make(model):
    return jax.pmap(model, axis_name="i")

def checkpoint(model, batch):
    outputs = make(model)(batch)
    return jax.tree_util.tree_map(lambda leaf: leaf[0], outputs)  # finds: index-replicates-the-row
