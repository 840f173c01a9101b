"""The records of results files: their fields, their JSON, and the schema that is made of them.

It imports nothing of this project, and msgspec beside the standard library: a worker, which has jax
and numpy alone, cannot import it.
"""
