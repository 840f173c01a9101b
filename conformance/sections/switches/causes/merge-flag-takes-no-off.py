import contextlib
import sys

import jax
from absl import app

sys.argv.append("--jax_pmap_shmap_merge=off")
jax.config.config_with_absl()
with contextlib.redirect_stderr(sys.stdout):
    app.run(lambda _: print("the program runs"))
