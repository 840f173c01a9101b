"""A Python that has exactly the JAX that was asked for."""
