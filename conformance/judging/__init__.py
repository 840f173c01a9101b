"""From a clause and its observations to a verdict; no JAX, no files."""
