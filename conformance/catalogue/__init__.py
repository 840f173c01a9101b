"""Claims, the clauses that test them, and the names that all packages share."""
