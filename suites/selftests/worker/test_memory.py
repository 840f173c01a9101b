"""The measure of peaks, against allocations of known size; and where there is none."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest

from conformance.worker import memory
from conformance.worker.memory import DeviceMemory, NoPeakError, known_peak, peak_bytes, peak_with

MIB = 2**20
SIZE = 64 * MIB
RESOLUTION = 0.1  # of SIZE, as the clauses state it


@pytest.fixture(autouse=True)
def _small_heap() -> Iterator[None]:
    """Each peak collects garbage: of what the tests' own process has imported there is none."""
    gc.freeze()
    yield
    gc.unfreeze()


linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone can put a peak back")


def ones() -> Any:
    return np.ones(SIZE, np.uint8)


def about(wanted: float, peak: int) -> bool:
    return abs(peak / SIZE - wanted) <= RESOLUTION


# On the process's own memory


@linux
def test_a_known_allocation_is_measured_as_its_size() -> None:
    assert about(1, known_peak(SIZE))


@linux
@pytest.mark.parametrize("part", [0.25, 0.5, 3])
def test_parts_and_multiples_are_told_apart(part: float) -> None:
    assert about(part, known_peak(int(SIZE * part)))


@linux
@pytest.mark.parametrize("freed", ["before the first measurement", "after it"])
def test_what_another_thread_freed_before_does_not_hide_a_peak(freed: str) -> None:
    # In a new process: only there is known what the C library keeps. Of two blocks the first is
    # mapped, the second lies in the thread's own memory.
    program = f"""
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from conformance.worker.memory import known_peak, peak_bytes

with ThreadPoolExecutor(1) as other:
    def elsewhere():
        return other.submit(np.ones, {SIZE // 4}, np.uint8).result()

    def measured():
        return known_peak({MIB})

    first, second = (measured, elsewhere) if {freed == "after it"} else (elsewhere, measured)
    first()
    elsewhere()
    second()
    print(peak_bytes(elsewhere))
"""
    ran = subprocess.run([sys.executable, "-c", program], stdout=PIPE, check=True, timeout=120)
    assert about(0.25, int(ran.stdout))


@linux
def test_what_was_freed_before_the_end_counts() -> None:
    def twice_then_once() -> Any:
        first = ones()
        second = ones()
        del first
        return second

    assert about(2, peak_bytes(twice_then_once))


@linux
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda given: given.__imul__(2), 1),
        (lambda given: given * 2, 2),
        (lambda given: [given * 2, given * 3], 3),
    ],
    ids=["in place", "one copy", "two copies"],
)
def test_an_argument_counts_once_and_every_copy_once_more(
    function: Callable[[Any], Any], wanted: float
) -> None:
    assert about(wanted, peak_with(ones, function))


@linux
def test_what_making_the_argument_took_does_not_count() -> None:
    assert about(1, peak_with(lambda: ones() * 2 + ones(), lambda given: given))


# The least of the repeats


class Scripted:
    """A meter that shows what it is told to."""

    def __init__(self, levels: list[int], peaks: list[int]) -> None:
        self._levels, self._peaks = iter(levels), iter(peaks)

    def level(self) -> int:
        return next(self._levels)

    def start(self) -> None:
        pass

    def highest(self) -> int:
        return next(self._peaks)


def test_the_least_peak_above_the_least_level_is_the_figure() -> None:
    meter = Scripted([12, 10, 11], [35, 33, 30])
    assert peak_with(lambda: None, lambda _: None, meter=meter) == 20


def test_each_call_gets_a_fresh_argument_and_one_more_warms_up() -> None:
    given: list[Any] = []
    made = iter(range(100))
    meter = Scripted([0] * 3, [0] * 3)
    peak_with(lambda: next(made), given.append, repeats=3, meter=meter)
    assert given == [0, 1, 2, 3]


# Where there is no peak


@pytest.mark.parametrize("name", ["_STATUS", "_CLEAR"])
def test_without_the_files_there_is_no_peak(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, name, tmp_path / "missing" / "file")
    with pytest.raises(NoPeakError, match="cannot be"):
        known_peak(MIB)


def test_a_status_without_a_peak_is_no_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text("Name: python\n")
    monkeypatch.setattr(memory, "_STATUS", status)
    with pytest.raises(NoPeakError, match="has no Vm"):
        known_peak(MIB)


# On a device that counts its own memory


class Device:
    """A device's count of what is held on it; its peak is never put back."""

    def __init__(self, **stats: int) -> None:
        self.stats = stats

    def memory_stats(self) -> dict[str, int]:
        return self.stats

    def take(self, size: int) -> None:
        self.stats["bytes_in_use"] += size
        self.stats["peak_bytes_in_use"] = max(
            self.stats["peak_bytes_in_use"], self.stats["bytes_in_use"]
        )


class Zeros:
    """Held bytes, given back when nobody holds them any more."""

    def __init__(self, device: Device, size: int) -> None:
        self._device, self._size = device, size
        device.take(size)

    def __del__(self) -> None:
        self._device.take(-self._size)


def test_a_device_shows_a_peak_below_an_earlier_one() -> None:
    device = Device(bytes_in_use=100, peak_bytes_in_use=5000)

    def call(size: int) -> None:
        device.take(size)
        device.take(-size)

    meter = DeviceMemory([device], Zeros)
    assert peak_with(lambda: 300, call, meter=meter) == 300
    assert peak_with(lambda: 0, call, meter=meter) == 0


@pytest.mark.parametrize("stats", [{}, {"bytes_in_use": 1}], ids=["nothing", "no peak"])
def test_a_device_that_does_not_count_has_no_peak(stats: dict[str, int]) -> None:
    with pytest.raises(NoPeakError, match="does not count"):
        peak_with(lambda: None, lambda _: None, meter=DeviceMemory([Device(**stats)], Zeros))
