"""The number of processes of a cluster, and of devices per process.

`Place` is one process's position in it, and the source of the data of a probe and of its NumPy
model: both compute the same numbers from the same position, so only JAX's behaviour can make them
differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ONE_PROCESS = ("1x8",)
FOUR_PROCESSES = ("4x2",)
SEVERAL_PROCESSES = ("2x2", "4x2")
ONE_AND_TWO = ("1x8", "2x2")
ONE_AND_FOUR = ("1x8", "4x2")
ONE_AND_SEVERAL = ("1x8", "2x2", "4x2")

# Why a clause of one process leaves several out, where they have clauses that differ.
APART = "other tests cover several processes"


MOST_CHARACTERS = 9  # of a topology, such as 9999x9999


@dataclass(frozen=True, slots=True, order=True)
class Topology:
    """`processes` x `devices_per_process`, written `4x2`."""

    processes: int
    devices_per_process: int

    @property
    def devices(self) -> int:
        """The number of devices in the cluster."""
        return self.processes * self.devices_per_process

    def __str__(self) -> str:
        return f"{self.processes}x{self.devices_per_process}"

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Parse `PROCESSESxDEVICES`; ValueError names the text and the syntax."""
        match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
        if match is None:
            raise ValueError(
                f"topology {text[:40]!r} is not PROCESSESxDEVICES: write for example 1x8 for one "
                "process with eight devices, or 4x2 for four processes with two devices each"
            )
        if len(text) > MOST_CHARACTERS:
            raise ValueError(
                f"topology {text[:MOST_CHARACTERS]}… has more devices than any cluster"
            )
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Place:
    """One process of a cluster: `process` of `topology.processes`."""

    topology: Topology
    process: int

    @property
    def first_row(self) -> int:
        """The global row of this process's first device."""
        return self.process * self.topology.devices_per_process

    def all_rows(self, *shape: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Return one row per device of the whole cluster, shape `(devices, *shape)`, all values
        distinct.

        Small integers: their sums are exact in float32, so models compare exactly.
        """
        full = (self.topology.devices, *shape)
        return np.arange(1, 1 + int(np.prod(full))).reshape(full).astype(dtype)

    def rows(self, *shape: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Return the rows of this process's devices: `(devices_per_process, *shape)`."""
        return self.mine(self.all_rows(*shape, dtype=dtype))

    def mine(self, all_rows: NDArray[Any]) -> NDArray[Any]:
        """Return this process's part of an array of `(devices of all processes, ...)`."""
        return all_rows[self.first_row : self.first_row + self.topology.devices_per_process]
