# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

step = jax.pmap(lambda s: s + 1, donate_argnums=(0,))

def main(state, train):
    if train:
        return step(state)
    return state.sum()
