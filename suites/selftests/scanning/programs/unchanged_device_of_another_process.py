# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax

def spread(parts):
    return [jax.device_put(part, device) for part, device in zip(parts, jax.devices())]  # finds: cpu-moves-nothing-between-processes
