import os
import warnings

import jax

for filters in ("default filters", "filters that show all"):
    with warnings.catch_warnings(record=True) as seen:
        if filters != "default filters":
            warnings.simplefilter("always")
        jax.config.update("jax_pmap_shmap_merge", False)
    print(f"by {filters}: {[os.path.basename(one.filename) for one in seen]}")
