import warnings

import jax
import numpy as np

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with jax.sharding.Mesh(np.array(jax.devices()), ("i",)):
        pass
print([str(one.message).split(" has")[0] for one in caught])
