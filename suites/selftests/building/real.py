"""The catalogue and the deviation entries that there are, read once for all tests of a process."""

from __future__ import annotations

import functools

# By name: a test may put another function in the modules' place.
from conformance.catalogue.loading import Catalogue, load
from conformance.judging.deviations import Deviation, load_all

# Of the newest JAX: entries about a library hold for a range of its versions.
PACKAGES = {"flax": "0.12.12", "equinox": "0.13.8"}


@functools.cache
def catalogue() -> Catalogue:
    return load()


@functools.cache
def entries() -> tuple[Deviation, ...]:
    return load_all()
