import jax

f = jax.pmap(fun=lambda x: x, axis_name="i", in_axes=(0,))

def main(x):
    y = f(x)
    return y[2]  # finds: index-replicates-the-row
