"""The catalogue: claims, loading the clauses that test them, and the identity of their programs."""
