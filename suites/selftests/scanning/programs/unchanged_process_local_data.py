# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax

def feed(sharding, rows, shape):
    whole = jax.make_array_from_process_local_data(sharding, rows, shape)
    return whole, jax.make_array_from_process_local_data(sharding, rows)  # finds: data-of-the-global-shape-taken-for-all
