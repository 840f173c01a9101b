"""Static analysis of a user's code base: which known issues of pmap and shard_map concern it.

Nothing that is scanned is imported or run. Files are parsed with LibCST and evaluated abstractly:
which names are jax.pmap, which values are mapped functions, and which are their outputs. A
recognised use is an event; the rules beside the known issues (`conformance.catalogue.finds`) decide
which events are findings.
"""
