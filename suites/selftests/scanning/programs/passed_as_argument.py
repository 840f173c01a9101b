import jax

def run(step, state, batches):
    for batch in batches:
        state, metrics = step(state, batch)  # finds: own-output-traced-again
    return metrics["loss"][0]  # finds: index-replicates-the-row

def main(train_step, state, batches):
    return run(jax.pmap(train_step, axis_name="b"), state, batches)
