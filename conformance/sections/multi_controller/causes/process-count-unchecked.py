import sys

import jax

number = int(sys.argv[3])
jax.distributed.initialize(sys.argv[1], 2 + number, number)
print(jax.process_count(), jax.device_count())
