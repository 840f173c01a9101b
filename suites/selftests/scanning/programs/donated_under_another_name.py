# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

step = jax.pmap(lambda s: s + 1, donate_argnums=0)


def main(state, batches):
    for _ in batches:
        old = state
        state = step(state)
        print((state - old).sum())  # finds: deleted-argument-other-error
    kept = state
    state = state.copy()
    step(state)
    return kept
