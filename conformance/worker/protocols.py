"""The types of a probe's arguments: `def probe(impl: Implementation, cluster: Cluster)`.

`probing.plain` has both for a Python session; the worker's own derive from those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import jax
from numpy.typing import NDArray

from conformance.spec.topology import Place
from conformance.worker.programs import Compiled

R = TypeVar("R")

Axes = int | None | tuple[Any, ...]  # None: not mapped; a tuple: an axis, or a pytree, per argument


class Mapped(Protocol):
    """A mapped function, or a compiled stage of one."""

    @property
    def function(self) -> Any:
        """JAX's own object; calls of it are not witnessed."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; an argument mapped over axis 0 has one row per `Implementation.devices`."""

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lower it for these arguments; AttributeError if it is a compiled stage."""


class Implementation(Protocol):
    """A way to map a function over rows: legacy pmap, new pmap, shard_map; or JAX without one."""

    name: str  # one of `names.COLUMNS`

    @property
    def is_pmap(self) -> bool:
        """Return whether this is one of the two pmaps, whose inputs and outputs are this
        process's.
        """

    @property
    def devices(self) -> list[jax.Device]:
        """The devices over which an argument of a map is sharded: pmap's are this process's."""

    def map(
        self,
        body: Callable[..., Any],
        axis_name: Hashable = "i",
        *,
        in_axes: Axes = 0,
        out_axes: Any = 0,
        devices: Sequence[jax.Device] | None = None,
        check_vma: bool = True,
        **options: Any,
    ) -> Mapped:
        """Map `body` as `jax.pmap` would; `options` go to `jax.pmap` or, here, `jax.jit`.

        Under shard_map `in_axes` is an int, None, or one of them per argument; `out_axes` an int
        or None; the mesh is over `devices` or all of the cluster's. `check_vma` is shard_map's own.
        """

    def adopt(self, function: Callable[..., Any], kind: str | None = None) -> Mapped:
        """Return a function that the probe mapped by hand as one whose calls are witnessed.

        For pmap `kind` is read off the object. A jit does not tell what is in it, so a probe names
        it: `jit(shard_map)`, `smap`.
        """

    def select(self) -> None:
        """Make `jax.pmap` mean this implementation, where this JAX still has the switch.

        Under shard_map and for JAX itself it stays what it is by default, as for a user.
        """

    def mesh(
        self, axis_name: Hashable = "i", devices: Sequence[jax.Device] | None = None
    ) -> jax.sharding.Mesh:
        """Return a 1-D mesh over `devices`, or all of the cluster's, in their order."""

    def sharding(
        self, axis_name: Hashable = "i", *, axis: int | None = 0
    ) -> jax.sharding.NamedSharding:
        """Return the sharding that the map's mesh gives an input mapped over `axis`.

        Over `self.devices`, which for pmap are this process's, as are pmap's arguments.
        """

    def rows(self, place: Place, *shape: int) -> NDArray[Any]:
        """Return an argument's rows as a user writes them, float32 `(len(self.devices), *shape)`.

        Under pmap each process has its own rows; under shard_map all write the same whole array.
        """

    def given(self, rows: NDArray[Any], axis_name: Hashable = "i") -> Any:
        """Return this process's rows, one per local device, as an argument of a map.

        For pmap they are returned as they are; for shard_map they are this process's part of a
        global `jax.Array` with one row per device of the cluster.
        """


@dataclass(frozen=True)
class Cluster(Place, ABC):
    """One process's view of the cluster that a probe runs on.

    A `Place`, as a probe gives it to models. `steps` has a record per step; `meet` waits until
    every process of the cluster has called it as often.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    meet: Callable[[], None] = lambda: None

    @property
    @abstractmethod
    def local_devices(self) -> list[jax.Device]:
        """This process's devices."""

    @property
    @abstractmethod
    def devices(self) -> list[jax.Device]:
        """The devices of the cluster, of all processes."""

    @abstractmethod
    def step(self, name: str, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
        """Call `function`, wait for its result and record it; return None if it raised."""

    @abstractmethod
    def twice(self, function: Callable[..., R], *args: Any) -> R | None:
        """Call `function` in two steps and return the second result: caches differ between
        the two.
        """

    @abstractmethod
    def compiled(
        self, name: str, function: Callable[..., Any], *args: Any, watched: str | None = None
    ) -> Compiled | None:
        """Run a step with empty caches that also notes, as `programs`, what JAX compiled for it.

        See `programs.compiled_by`, whose answer is returned; None if the step raised.
        """

    @abstractmethod
    def note(self, key: str, value: Any) -> None:
        """Add a fact (a JSON value) to the step that was last recorded."""
