import jax

f = jax.pmap(lambda x: x.sum())

def main(x):
    out = f(x)
    total = 0.0
    for i, value in enumerate(out):  # finds: iteration-goes-through-the-host
        total += float(value) * i
    return total
