"""Clauses that break their cluster: a package, so that workers of another Python can import it."""
