import jax
from flax import jax_utils
from flax.training import common_utils


def evaluate(p_eval_step, params, eval_ds, num_eval_steps):
  """The mapped function comes from the caller."""
  metrics = []
  for _, batch in zip(range(num_eval_steps), eval_ds):
    metrics.append(p_eval_step(params, common_utils.shard(batch)))  # finds: calls-run-python
  metrics = common_utils.get_metrics(metrics)  # finds: index-replicates-the-row
  return jax.tree_util.tree_map(lambda x: x.sum(), metrics)


def main(eval_step, params, eval_ds):
  p_eval_step = jax.pmap(eval_step, axis_name='batch')
  params = jax_utils.replicate(params)  # finds: device-put-stackers-gone
  results = evaluate(p_eval_step, params, eval_ds, 20)
  return results
