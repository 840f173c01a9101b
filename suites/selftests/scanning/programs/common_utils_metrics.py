import jax
from flax.training import common_utils

step = jax.pmap(lambda s, b: (s, {"loss": b.mean()}), axis_name="batch")

def main(state, batches):
    logs = []
    for batch in batches:
        state, metrics = step(state, common_utils.shard(batch))  # finds: own-output-traced-again
        logs.append(metrics)
    return common_utils.get_metrics(logs)  # finds: index-replicates-the-row
