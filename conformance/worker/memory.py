"""Measure the bytes that a call needs at its peak, while it runs.

CPU devices keep their arrays in the process, so the resident peak is what a call needed at once,
whoever allocated it: NumPy, XLA or the runtime. Only Linux can reset that peak. An accelerator
counts its own memory, and its peak cannot be reset.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import jax
import numpy as np

from conformance.worker.compiling import compiled_as_by_default

REPEATS = 3  # the least of them is taken: noise only ever adds
RESET_PEAK = "5"  # as the kernel's proc documentation numbers it
PEAK, CURRENT = "VmHWM", "VmRSS"  # of this process, in the kernel's words

# Memory has settled when it did not fall between several looks.
LOOK_S = 0.005
STEADY_LOOKS = 3
MOST_LOOKS = 100

# The GNU C library's parameters, by its numbers: blocks of this size or more are mapped each for
# itself, and so many free bytes at a heap's end return to the system.
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
LARGE_BYTES = 2**17  # both in a process that has freed no mapped block yet

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")

T = TypeVar("T")


class NoPeakError(RuntimeError):
    """This system cannot measure the peak of a process or of a device."""


class Meter(Protocol):
    """Counts the bytes of one memory."""

    def level(self) -> int:
        """Return the bytes in use now."""

    def start(self) -> None:
        """Forget earlier peaks."""

    def highest(self) -> int:
        """Return the most bytes in use at one time since `start`."""


def peak_bytes(function: Callable[[], object], *, repeats: int = REPEATS) -> int:
    """Return the most bytes that `function` made resident at one time, its result included.

    It is called once to warm up (compiling takes memory too), then `repeats` times; the smallest
    peak counts. The function must wait for its result itself, because JAX returns before it has
    computed. Bytes that are never written are not resident and do not count.
    """
    return peak_with(lambda: None, lambda _: function(), repeats=repeats)


def peak_with(
    make: Callable[[], T],
    function: Callable[[T], object],
    *,
    repeats: int = REPEATS,
    meter: Meter | None = None,
) -> int:
    """Return the most bytes in use while `function` runs, its argument and its result included.

    For a function that consumes its argument: each call gets a new one, made before counting
    starts. The smallest level without an argument and the smallest peak count, because memory that
    the runtime's threads free late can only increase either.
    """
    meter = meter or ResidentMemory()
    levels, peaks = [], []
    with compiled_as_by_default():
        _hold(function, make())
        for _ in range(repeats):
            gc.collect()
            levels.append(meter.level())
            argument = make()
            gc.collect()
            meter.start()
            _hold(function, argument)
            peaks.append(meter.highest())
            del argument
    return min(peaks) - min(levels)


def known_peak(size: int) -> int:
    """Return what `peak_bytes` reports for an allocation of `size` bytes: the error is its
    resolution.
    """
    return peak_bytes(lambda: np.ones(size, np.uint8))


def meter_of(devices: Sequence[Any]) -> Meter:
    """Return the meter of the memory in which these devices keep their arrays."""
    return ResidentMemory() if devices[0].platform == "cpu" else DeviceMemory(devices)


class ResidentMemory:
    """This process's resident memory; NoPeakError where the system has no such peak.

    From the first of them on, large blocks return to the system as soon as they are freed. The C
    library would otherwise keep some for the thread that took them, where the next call reuses
    them without a trace: two rows of a result were once missing from a peak.
    """

    def __init__(self) -> None:
        tune = getattr(ctypes.CDLL(None), "mallopt", None)
        if tune is not None:
            for parameter in (MMAP_THRESHOLD, TRIM_THRESHOLD):
                tune(parameter, LARGE_BYTES)

    def level(self) -> int:
        """Return the process's resident bytes, once the allocator has returned what is free."""
        _settle()
        return _resident(CURRENT)

    def start(self) -> None:
        """Reset the peak that the kernel keeps; NoPeakError if the system refuses that."""
        _settle()
        try:
            _CLEAR.write_text(RESET_PEAK)
        except OSError as error:
            raise NoPeakError(
                f"the peak of this process cannot be put back here: {error}"
            ) from error

    def highest(self) -> int:
        """Return the highest resident bytes since `start`."""
        return _resident(PEAK)


class DeviceMemory:
    """The memory of accelerators, by their own count; NoPeakError where they keep none.

    A device's peak stays where something earlier left it. So the level is first raised to it, by
    zeros that are held: from there on whatever is taken shows.
    """

    def __init__(
        self, devices: Sequence[Any], fill: Callable[[Any, int], object] | None = None
    ) -> None:
        self._devices = list(devices)
        self._fill = fill or _zeros
        self._held: dict[Any, tuple[int, object]] = {}

    def level(self) -> int:
        """Return the bytes in use on all devices together."""
        self._held.clear()
        return sum(_count(device, "bytes_in_use") for device in self._devices)

    def start(self) -> None:
        """Fill each device up to its earlier peak, so that a new peak shows above it."""
        self._held.clear()
        for device in self._devices:
            before = _count(device, "bytes_in_use")
            short = _count(device, "peak_bytes_in_use") - before
            zeros = self._fill(device, short) if short else None
            # As the device rounds sizes up, by its own count.
            self._held[device] = (_count(device, "bytes_in_use") - before, zeros)

    def highest(self) -> int:
        """Return the peak bytes of all devices together, without what `start` filled."""
        return sum(
            _count(device, "peak_bytes_in_use") - self._held[device][0] for device in self._devices
        )


def _hold(function: Callable[[T], object], argument: T) -> None:
    result = function(argument)
    del result


def _settle() -> None:
    """Return free memory to the system, and wait until nothing more is freed.

    Memory that the allocator keeps would be reused without a trace in the peak.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    now, steady = -1, 0
    for _ in range(MOST_LOOKS):
        if trim is not None:
            trim(0)
        before, now = now, _resident(CURRENT)
        steady = steady + 1 if now >= before else 0
        if steady == STEADY_LOOKS:
            return
        time.sleep(LOOK_S)


def _resident(which: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError as error:
        raise NoPeakError(f"the peak of this process cannot be measured here: {error}") from error
    for line in lines:
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) * 1024
    raise NoPeakError(f"{_STATUS} has no {which}")


def _count(device: Any, what: str) -> int:
    stats = device.memory_stats() or {}
    if what not in stats:
        raise NoPeakError(f"{device} does not count its {what}")
    return int(stats[what])


def _zeros(device: Any, size: int) -> object:
    there = jax.sharding.SingleDeviceSharding(device)
    return jax.block_until_ready(
        jax.jit(lambda: jax.numpy.zeros(size, "u1"), out_shardings=there)()
    )
