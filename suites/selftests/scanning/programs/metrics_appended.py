import jax

step = jax.pmap(lambda s, b: (s, {"loss": b.mean()}))

def main(state, batches):
    logs = []
    for batch in batches:
        state, metrics = step(state, batch)  # finds: own-output-traced-again
        logs.append(metrics)
    return [m["loss"][0] for m in logs]  # finds: index-replicates-the-row
