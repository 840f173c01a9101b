"""Self-tests call probes in their own process, so it imports JAX before it loads the catalogue."""

from __future__ import annotations

import jax  # noqa: F401 (the catalogue would stand without it: `conformance.catalogue.stand_ins`)
