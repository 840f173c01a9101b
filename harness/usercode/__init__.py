"""A user's own code, run on clusters of JAX processes: scripts, and functions to be compared."""
