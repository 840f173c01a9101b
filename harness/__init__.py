"""How a case is run: targets, clusters of worker processes, the pytest plugin, and the command.

The worker's side (`worker`, `zygote`, `channel`, `deadlines`, `faults`) imports only the standard
library, jax, numpy and `conformance`, because that is all another interpreter has.
"""
