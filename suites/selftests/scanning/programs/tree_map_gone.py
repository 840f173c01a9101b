# from legacy_pmap@0.7.2 to new_pmap@0.12.0.1
import jax

f = jax.pmap(lambda x: x)

def main(x):
    return jax.tree.map(lambda a: a + 1, f(x))
