import jax

start = jax.pmap(lambda x: x)
step = jax.pmap(lambda s: s + 1, donate_argnums=0)


def same_error_in_each_version(x):
    state = start(x)
    new = step(state)
    return state.sum(), new


def other_error(x):
    state = start(x)
    step(state)
    return step(state)  # finds: deleted-argument-other-error
