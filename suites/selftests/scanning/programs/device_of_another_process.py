# from legacy_pmap@0.7.2 to new_pmap@0.12.0.1
import jax


def hand_over(part):
    if jax.process_index() == 0:
        return jax.device_put(part, jax.devices()[-1])  # finds: cpu-pipeline-hand-over-refused
    return part
