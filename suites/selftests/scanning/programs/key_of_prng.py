# from new_pmap@0.7.2 to new_pmap@0.12.0.1
import jax

init = jax.pmap(lambda key: jax.random.normal(key, (2,)))

def main(seed):
    keys = jax.random.split(jax.random.PRNGKey(seed), jax.local_device_count())
    return init(keys)
