import os

os.environ["JAX_PMAP_SHMAP_MERGE"] = "0"  # finds: merge-variable-ignored
import jax
