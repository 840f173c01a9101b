"""The catalogue and the deviation entries that there are, read once for all tests of a process."""

from __future__ import annotations

import functools

# By name: a test may put another function in the modules' place.
from conformance.catalogue.loading import Catalogue, load
from conformance.judging.deviations import Deviation, load_all


@functools.cache
def catalogue() -> Catalogue:
    return load()


@functools.cache
def entries() -> tuple[Deviation, ...]:
    return load_all()
