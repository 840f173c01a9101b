"""The names that ids, results and reports share.

They are strings, not objects, because they travel as JSON between processes and files.
"""

from __future__ import annotations

LEGACY_PMAP = "legacy_pmap"
NEW_PMAP = "new_pmap"
SHARD_MAP = "shard_map"
IMPLEMENTATIONS = (LEGACY_PMAP, NEW_PMAP, SHARD_MAP)

# The column of a clause that maps nothing: what it asks is the same whichever implementation runs.
JAX = "jax"
COLUMNS = (*IMPLEMENTATIONS, JAX)

CPU = "cpu"  # the platform whose clusters need no hardware of their own
# The platform of a target whose programs are compiled for TPU and run on nothing.
TPU_COMPILE = "tpu-compile"

# The figure of a step of the time lane: what each of its rounds took.
SECONDS = "seconds"

# Where in a call an exception was raised, in the order a call goes through them.
PHASES = ("construct", "arguments", "trace", "lower", "compile", "execute", "fetch", "unknown")
