# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

add = jax.pmap(lambda a, b: a + b, donate_argnums=(0,))

def main(a):
    return add(a, a)  # finds: deleted-argument-other-error
