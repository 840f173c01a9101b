import jax
import numpy as np

predict = jax.pmap(lambda w, x: x @ w)

def evaluate(w, batch, count):
    logits = predict(w, batch)
    return np.asarray(logits[:2])  # finds: several-rows-gather-the-whole-array
