import contextlib
import sys

import jax  # not enough: its flags are not absl's
from absl import app

sys.argv.append("--jax_pmap_shmap_merge=true")
with contextlib.redirect_stderr(sys.stdout):
    app.run(lambda _: print(f"the program runs, with jax {jax.__version__}"))
