import warnings

import jax
import numpy as np

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    jax.pmap(lambda x: 2 * x, "i")(np.ones((jax.local_device_count(), 3), np.float32))
print(sorted({f"{one.category.__name__}: {str(one.message).split(' and')[0]}" for one in seen}))
