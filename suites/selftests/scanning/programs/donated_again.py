# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

step = jax.pmap(lambda s, x: s + x, donate_argnums=(0,))

def main(state, x):
    new = step(state, x)
    return new, state.mean()  # finds: deleted-argument-other-error
