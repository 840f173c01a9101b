"""Read results files, merge them, and publish what they contain.

Nothing here imports the harness or the clauses: a results file contains the texts that it needs, so
that an old one still renders.
"""
