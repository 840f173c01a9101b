import jax
import numpy as np
from collections import defaultdict


def decode_all(decode, model_params, chunks, tokenizer):
  p_decode = jax.pmap(decode, in_axes=(None, 0))
  texts = []
  for chunk in chunks:
    tokens, scores = p_decode(model_params, chunk)  # finds: calls-run-python
    for device_tokens in tokens:  # finds: iteration-goes-through-the-host
      texts.extend(tokenizer.batch_decode(np.asarray(device_tokens)))
    best = max(float(s) for s in scores)  # finds: iteration-goes-through-the-host
    first, *_ = jax.tree.leaves(tokens)
  return texts, best
