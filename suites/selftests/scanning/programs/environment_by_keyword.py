import os
import subprocess


def main(script, merge):
    env = dict(os.environ, JAX_PMAP_SHMAP_MERGE=str(merge))  # finds: merge-variable-ignored
    subprocess.run(["python", script, f"--jax_pmap_shmap_merge={merge}"], env=env)  # finds: merge-flag-gone
