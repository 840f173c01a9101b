"""Python environments that have exactly the requested JAX."""
