import sys

import jax

jax.config.update("jax_cross_host_transfer_socket_address", "127.0.0.1:0")
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
print(jax.device_count())
