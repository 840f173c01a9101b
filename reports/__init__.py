"""Reads result files, merges them, and publishes what they say.

Nothing here imports the harness or the clauses: a results file carries the texts that it needs, so
that one written long ago still renders.
"""
