"""How many bytes a call takes at its peak: measured on this process's own resident memory.

CPU devices keep their arrays in the process, so its peak is what a call needed at once, whoever
allocated it: NumPy, XLA or the runtime. Linux alone can put the peak back to where it stands.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np

REPEATS = 3  # the least of them is taken: noise only ever adds
RESET_PEAK = "5"  # as the kernel's proc documentation numbers it

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class NoPeakError(RuntimeError):
    """This system cannot measure the peak of a process."""


def peak_bytes(function: Callable[[], object], *, repeats: int = REPEATS) -> int:
    """The most bytes that `function` made resident at one time, its result included.

    It is called once to warm up (compiling takes memory too), then `repeats` times, of which the
    least peak counts. The function must wait for its result itself, as JAX returns before it has
    computed. Bytes that nobody writes to are not resident and do not count.
    """
    _hold(function)
    return min(_peak(function) for _ in range(repeats))


def known_peak(size: int) -> int:
    """What `peak_bytes` says of an allocation of `size` bytes: the difference is its resolution."""
    return peak_bytes(lambda: np.ones(size, np.uint8))


def _peak(function: Callable[[], object]) -> int:
    gc.collect()
    _return_free_memory()
    try:
        _CLEAR.write_text(RESET_PEAK)
        before = _peak_so_far()
        _hold(function)
        return _peak_so_far() - before
    except OSError as error:
        raise NoPeakError(f"the peak of this process cannot be measured here: {error}") from error


def _hold(function: Callable[[], object]) -> None:
    result = function()
    del result


def _return_free_memory() -> None:
    """Freed memory that the allocator keeps would be used again without a trace in the peak."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _peak_so_far() -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise NoPeakError(f"{_STATUS} has no VmHWM")
