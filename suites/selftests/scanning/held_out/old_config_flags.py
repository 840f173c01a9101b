import os
import sys

os.environ.setdefault('JAX_PMAP_SHMAP_MERGE', 'false')  # finds: merge-variable-ignored
import jax
from absl import app, flags
from jax import config

config.update('jax_enable_x64', True)
config.update('jax_pmap_shmap_merge', False)  # finds: merge-option-gone
FLAGS = flags.FLAGS


def main(argv):
  del argv
  config.parse_flags_with_absl()
  print(jax.devices())


if __name__ == '__main__':
  app.run(main)
