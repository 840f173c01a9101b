# from legacy_pmap@0.9.2 to new_pmap@0.12.0.1
import jax

sample = jax.pmap(lambda key: jax.random.normal(jax.random.wrap_key_data(key), (3,)))

def main(seed):
    keys = jax.random.split(jax.random.PRNGKey(seed), jax.local_device_count())
    return sample(keys)
