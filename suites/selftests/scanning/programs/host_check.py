import jax

step = jax.pmap(lambda s: s + 1)

def main(state, path):
    state = step(state)
    if jax.process_index() == 0:
        print("saving to", path)
    return state
