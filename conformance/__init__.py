"""What JAX's documents claim, and how an observation of it is judged.

Everything here works without JAX, except `implementations`, `recording`, `describing` and the
probes.
"""
