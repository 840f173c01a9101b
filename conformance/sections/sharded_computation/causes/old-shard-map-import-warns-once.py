import importlib
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        make = importlib.import_module("jax.experimental.shard_map").shard_map
print(len(caught), *[str(one.message).split(". ")[0] for one in caught], sep="\n")
