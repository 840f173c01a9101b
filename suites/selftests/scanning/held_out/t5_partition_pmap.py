import functools
from typing import Callable
import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils


def compute_metrics(loss, weights):
  return {'loss': loss, 'denominator': weights.sum()}


class PmapPartitioner:
  """Partitions computations by pmap over the batch."""

  def __init__(self, axis='batch'):
    self.axis = axis

  def partition(self, fn: Callable, static_argnums=(), donate_argnums=()):
    return jax.pmap(fn, axis_name=self.axis, static_broadcasted_argnums=static_argnums, donate_argnums=donate_argnums)

  def compile(self, partitioned, *args):
    return partitioned.lower(*args).compile()  # finds: compiled-stage-is-global


def main(step, state, batches):
  partitioner = PmapPartitioner()
  train = partitioner.partition(step, donate_argnums=(0,))
  for batch in batches:
    state, metrics = train(state, batch)  # finds: own-output-traced-again
    host = jax.tree.map(lambda m: m[0], metrics)  # finds: index-replicates-the-row
    print(host['loss'])
  return state
