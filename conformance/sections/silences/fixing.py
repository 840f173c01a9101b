"""What the tests of fixes have in common: the devices that they need, and their rows."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.defaults import Defaults

Rows = NDArray[Any]

COUNT, WIDTH = 8, 3  # devices, and numbers of a row

DEFAULTS = Defaults(
    needs=devices(COUNT), left_out="the fix is for programs of one process, or the same in several"
)
