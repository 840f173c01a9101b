import sys
import time

import jax

number = int(sys.argv[3])  # process 2 takes the number of process 1, and comes later
time.sleep(3 * (number == 2))
if number < 3:
    jax.distributed.initialize(sys.argv[1], 2, min(number, 1), initialization_timeout=4)
    time.sleep(10)
    print("done")
