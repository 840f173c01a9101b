import jax

evaluate = jax.pmap(lambda batch: batch)

def main(batch):
    out = evaluate(batch)
    return {name: out[name] for name in ("images", "labels")}
