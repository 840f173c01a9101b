import jax

print(jax.tree_map(lambda x: x[0], {"rows": [1, 2]}))
