"""Everything that runs beside JAX: processes and their messages, implementations, recording.

Imports only the standard library, jax, numpy and `conformance`, because that is all another
interpreter has.
"""
