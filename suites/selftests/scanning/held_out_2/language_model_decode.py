"""Beam search in a pmap, detokenised on the host."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax.training import common_utils


def predict(inputs, params, beam_size, max_len, model):
    return model.beam(params, inputs, beam_size, max_len)


def tohost(x):
    """Collects batches from all devices to host and flattens batch dimensions."""
    n_device, n_batch, *remaining = x.shape
    return np.array(x).reshape((n_device * n_batch,) + tuple(remaining))


def decode(p_pred_step, params, eval_ds, vocabulary):
    sources, predictions = [], []
    for batch in eval_ds:
        batch = jax.tree.map(lambda x: x._numpy(), batch)
        batch = common_utils.shard(batch)
        predicted = p_pred_step(batch["inputs"], params)  # finds: calls-run-python
        predicted = tohost(predicted)
        inputs = tohost(batch["inputs"])
        for i, s in enumerate(predicted):
            sources.append(vocabulary.decode(inputs[i]))
            predictions.append(vocabulary.decode(s))
    return sources, predictions


def main(model, params, eval_ds, vocabulary):
    p_pred_step = jax.pmap(
        functools.partial(predict, beam_size=4, max_len=64, model=model),
        axis_name="batch",
        in_axes=(0, None),
    )
    sources, predictions = decode(p_pred_step, params, eval_ds, vocabulary)
    print(sources[0], predictions[0], predictions[-1])
