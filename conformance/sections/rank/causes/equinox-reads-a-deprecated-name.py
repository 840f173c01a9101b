import warnings

import jax
import numpy as np

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import equinox

    equinox.filter_pmap(lambda x: 2 * x, axis_name="i")(
        np.ones((jax.local_device_count(), 3), np.float32)
    )
print(sorted({f"{one.category.__name__}: {one.message}" for one in seen}))
