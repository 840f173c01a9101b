"""Processes as one JAX job, and what is known of one that failed."""
