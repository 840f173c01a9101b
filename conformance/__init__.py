"""What JAX's documents claim, how it is executed in a worker, and how an observation is judged."""
