"""JAX's nightly wheels: what they are called, where they are, and how uv is told to take them.

They lie on an index of JAX's own, never on the package index; what else a target needs may be on
either, so that one is asked first and the usual one after it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

INDEX = "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/"
INDEX_VARIABLE = "PMAP_CONFORMANCE_NIGHTLY_INDEX"

# The oldest that may be chosen: named as a development version, so that those may be.
ANY = ("jax>=0.7.0.dev0", "jaxlib>=0.7.0.dev0")

FAR_OFF = 99991231  # a night after all others


def is_nightly(version: str) -> bool:
    """Whether a version of JAX is one of its nightly wheels', such as 0.12.1.dev20261122."""
    return re.search(r"\.dev\d+$", version) is not None


def index(environ: Mapping[str, str] = os.environ) -> str:
    """Where nightly wheels are taken from: JAX's own index, or a mirror that the user names."""
    return environ.get(INDEX_VARIABLE) or INDEX


def options() -> list[str]:
    """What uv is told of them; what they require is of the same night, so may be one too."""
    return ["--index", index(), "--prerelease", "allow"]
