from clu import metrics, metric_writers, periodic_actions
import flax
import jax
import jax.numpy as jnp


@flax.struct.dataclass
class TrainMetrics(metrics.Collection):
  accuracy: metrics.Accuracy
  loss: metrics.Average.from_output('loss')


def train_step(state, batch):
  logits = state.apply_fn(state.params, batch['x'])
  update = TrainMetrics.gather_from_model_output(loss=logits.mean(), logits=logits, labels=batch['y'])
  return state, update


def train(state, batches, writer):
  p_train_step = jax.pmap(train_step, axis_name='batch')
  train_metrics = None
  state = flax.jax_utils.replicate(state)  # finds: device-put-stackers-gone
  for step, batch in enumerate(batches):
    with jax.profiler.StepTraceAnnotation('train', step_num=step):
      state, metrics_update = p_train_step(state, batch)  # finds: own-output-traced-again
      metric_update = flax.jax_utils.unreplicate(metrics_update)  # finds: unreplicated-onto-one-device
      train_metrics = metric_update if train_metrics is None else train_metrics.merge(metric_update)
  writer.write_scalars(step, train_metrics.compute())
