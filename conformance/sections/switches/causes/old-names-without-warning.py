import warnings

import jax

names = {"device_put_sharded": jax, "device_put_replicated": jax, "PmapSharding": jax.sharding}
for name, module in names.items():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        getattr(module, name)
    print(f"{name}: {len(seen)} warnings")
