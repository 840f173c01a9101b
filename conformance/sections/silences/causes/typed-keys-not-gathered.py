import jax

keys = jax.random.split(jax.random.key(0), jax.device_count())
gathered = jax.pmap(lambda key: jax.random.key_data(jax.lax.all_gather(key, "i")), "i")(keys)
print(gathered.shape)
