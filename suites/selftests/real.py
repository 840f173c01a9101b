"""The catalogue and the deviation entries that there are, read once for all tests of a process."""

from __future__ import annotations

import functools

from conformance.catalogue import loading
from conformance.catalogue.loading import Catalogue
from conformance.judging import deviations
from conformance.judging.deviations import Deviation


@functools.cache
def catalogue() -> Catalogue:
    return loading.load()


@functools.cache
def entries() -> tuple[Deviation, ...]:
    return deviations.load_all()
