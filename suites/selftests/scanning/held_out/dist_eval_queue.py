import collections
import jax
import numpy as np


def run(model, params, batches):
    p_apply = jax.pmap(model.apply)
    pending = collections.deque()
    for batch in batches:
        pending.append(p_apply(params, batch))  # finds: calls-run-python
        if len(pending) > 2:
            out = pending.popleft()
            print(float(out["loss"][0]))  # finds: index-replicates-the-row
    return [np.asarray(o["loss"]) for o in pending]
