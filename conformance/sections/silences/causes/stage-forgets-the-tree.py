import jax
import numpy as np

rows = np.ones((8, 3), np.float32)
shape = jax.ShapeDtypeStruct(rows.shape, rows.dtype)
mapped = jax.pmap(lambda x: {"a": x, "b": x}, "i")
print(jax.tree.structure(mapped.lower(rows).compile()(rows)))
try:
    print(mapped.lower(shape).out_tree)
except Exception as error:
    print(type(error).__name__)
scaled = jax.pmap(lambda x, n: n * x, "i", static_broadcasted_argnums=1)
try:
    print(scaled.lower(rows, 2).compile()(rows).shape)
except Exception as error:
    print(type(error).__name__)
