"""Static findings in a user's code base: which known issues of pmap and shard_map concern it.

Nothing that is scanned is imported or run. Files are parsed with LibCST and evaluated abstractly:
which names are jax.pmap, which values are mapped functions, and which are their outputs. What is
recognised is an event; the rules beside the known issues (`conformance.catalogue.finds`) say which
events are findings.
"""
