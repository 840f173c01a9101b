"""Trains on some of the devices, evaluates on the others."""
import jax
import jax.numpy as jnp
import numpy as np

DEVICES = jax.devices()
TRAIN, EVAL = DEVICES[:6], DEVICES[6:]


def step(w, x):
    return w - 0.1 * jax.lax.pmean(x.mean(), "i")


train_step = jax.pmap(step, axis_name="i", devices=TRAIN)  # finds: unequal-devices-lose-some
here_step = jax.pmap(step, axis_name="i", devices=jax.local_devices())
all_step = jax.pmap(step, axis_name="i", devices=jax.devices())


def main():
    w = np.zeros(len(TRAIN), np.float32)
    x = np.ones((len(TRAIN), 4), np.float32)
    for _ in range(20):
        w = train_step(w, x)  # finds: own-output-traced-again
    print(np.asarray(w).mean())
    n = jax.local_device_count()
    print(here_step(np.zeros(n), np.ones((n, 2))))
    print(EVAL[0], DEVICES[1:])


if __name__ == "__main__":
    main()
