"""The variable is set before jax is imported."""
import os
import subprocess
import sys

os.environ.setdefault("JAX_PMAP_SHMAP_MERGE", "0")  # finds: merge-variable-ignored
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


def uses_new_pmap():
    return jax.config.jax_pmap_shmap_merge  # finds: merge-option-cannot-be-asked


def uses_x64():
    return jax.config.jax_enable_x64


def reduce(x):
    y = jax.pmap(jnp.sin)(x)
    if uses_new_pmap():
        y = jax.device_get(y)
    return y.sum()


def child(script):
    env = dict(os.environ, JAX_PLATFORMS="cpu")
    return subprocess.run([sys.executable, script], env=env, check=True)


if __name__ == "__main__":
    child(sys.argv[1])
