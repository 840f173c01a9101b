"""What JAX's documents claim, and how an observation of it is judged.

Everything here except `implementations`, `recording`, `describing` and the probes works without JAX.
"""
