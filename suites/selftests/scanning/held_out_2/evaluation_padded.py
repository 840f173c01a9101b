"""Evaluation over a padded data set; keeps only the valid examples."""
import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np


def pad(batch, size):
    missing = size - batch["image"].shape[0]
    mask = np.concatenate([np.ones(size - missing), np.zeros(missing)])
    batch = {k: np.pad(v, [(0, missing)] + [(0, 0)] * (v.ndim - 1)) for k, v in batch.items()}
    return batch | {"mask": mask}


def build_eval(apply_fn):
    @functools.partial(jax.pmap, axis_name="batch", in_axes=(None, 0))
    def eval_step(params, batch):
        logits = apply_fn(params, batch["image"])
        hits = (logits.argmax(-1) == batch["label"]) * batch["mask"]
        return {
            "hits": jax.lax.psum(hits.sum(), "batch"),
            "count": jax.lax.psum(batch["mask"].sum(), "batch"),
        }, logits

    return eval_step


def evaluate(apply_fn, params, loader, per_device=32):
    n = jax.local_device_count()
    eval_step = build_eval(apply_fn)
    totals = collections.Counter()
    confusion = np.zeros((10, 10))
    for batch in loader:
        count = len(batch["label"])
        batch = pad(batch, n * per_device)
        batch = {k: v.reshape(n, per_device, *v.shape[1:]) for k, v in batch.items()}
        sums, logits = eval_step(params, batch)  # finds: calls-run-python
        for name, value in sums.items():
            totals[name] += float(value[0])  # finds: index-replicates-the-row
        guess = np.asarray(logits).reshape(n * per_device, -1)[:count].argmax(-1)
        for g, l in zip(guess, batch["label"].reshape(-1)[:count]):
            confusion[l, g] += 1
    return totals["hits"] / totals["count"], confusion
