"""From what was observed to a verdict; imports no JAX."""
