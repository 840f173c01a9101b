import os

os.environ["JAX_PMAP_SHMAP_MERGE"] = ""
import jax

print(jax.__version__)
