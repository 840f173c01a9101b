import os
import warnings

import jax

os.environ["KUBERNETES_SERVICE_HOST"] = "localhost"  # as it is set in every pod
warnings.showwarning = lambda message, *_: print(str(message).splitlines()[0])
jax.distributed.initialize()
