import jax

first = jax.pmap(lambda x: x + 1)
second = jax.pmap(lambda x: x * 2)

def main(x):
    return second(first(x))
