"""From observations to a verdict; imports no JAX."""
