# from new_pmap@0.7.2 to new_pmap@0.9.1
import jax

apply = jax.pmap(lambda scale, x: scale * x, in_axes=(None, 0))

def main(x):
    return apply(2.0, x)  # finds: python-number-not-made-global
