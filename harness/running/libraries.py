"""What libraries do beside releases of JAX, each in the version that is installed with that JAX.

Beside a JAX alone, all libraries are installed together, in the newest versions that their own
requirements allow; a target that pins some, such as `jax==0.8.3+flax==0.12.0`, has these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from packaging.utils import canonicalize_name

from harness.running.answering import answer
from harness.targets.target import Target, describe, parse_spec, provision

MODULE = "conformance.worker.library_use"
LIBRARIES = ("chex", "dm-haiku", "equinox", "flax", "optax", "orbax-checkpoint")
TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}

Record = dict[str, Any]


def examine(specs: Sequence[str], *, progress: Callable[[str], None]) -> Iterator[Record]:
    """Return a record for each library of each target."""
    for text in specs:
        pins = parse_spec(text).pins
        target = provision(text, extras=() if pins else LIBRARIES, progress=progress)
        progress(f"using libraries beside {target.spec}")
        known = describe(target)
        for library in sorted(set(target.packages) & set(LIBRARIES)):
            yield {
                "library": library,
                "version": known[library],
                "jax": known["jax"],
                "python": known["python"],
                "pinned": bool(pins),
                **_use(target, library),
            }


def _use(target: Target, library: str) -> Record:
    found: Record = answer(target, MODULE, canonicalize_name(library), variables=TWO_DEVICES)
    return found
