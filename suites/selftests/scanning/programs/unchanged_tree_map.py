# from new_pmap@0.9.0 to new_pmap@0.12.0.1, unchanged
import jax

def double(tree):
    return jax.tree_map(lambda x: 2 * x, tree)  # finds: tree-map-gone
