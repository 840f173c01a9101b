"""What a clause is written with: claims' clauses, families, expectations; NumPy, no JAX."""
