"""What a probe is given, with nothing of the harness in it: `impl` maps, `cluster` runs steps.

A clause's program is shown with these two, so that it can be pasted into a Python session and does
there what it does in a cell. The worker's own (`implementations`, `recording`) derive from them and
add what proves and records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.names import JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place
from conformance.worker.programs import Compiled, compiled_by
from conformance.worker.protocols import Axes, Cluster, Implementation, Mapped, R

FLAG = "jax_pmap_shmap_merge"
DEFAULT = jax.config.values.get(FLAG)  # before any probe has changed it
FIRST_CALL, SECOND_CALL = "first call", "second call"


class PlainMapped:
    """A mapped function; calling it calls `function`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.function, name)


class PlainImplementation(Implementation):
    """An implementation that maps and records nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_pmap(self) -> bool:
        """Return whether this is one of the two pmaps."""
        return self.name != SHARD_MAP

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
        """Map `body`, as `Implementation.map` says; ValueError for JAX itself."""
        if self.name == JAX:
            raise ValueError("a clause of JAX itself maps nothing: expect something of each column")
        if self.is_pmap:
            self.select()
            function = jax.pmap(
                body, axis_name, in_axes=in_axes, out_axes=out_axes, devices=devices, **options
            )
            return self.adopt(function)
        mesh = self.mesh(axis_name, devices)

        def ranked(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            reduced = [
                arg if axis is None else jax.tree.map(lambda x, a=axis: x.squeeze(a), arg)
                for arg, axis in zip(args, axes, strict=True)
            ]
            result = body(*reduced)
            if out_axes is None:
                return result
            return jax.tree.map(lambda x: jax.numpy.expand_dims(x, out_axes), result)

        function = jax.jit(
            jax.shard_map(
                ranked,
                mesh=mesh,
                in_specs=_specs(in_axes, axis_name),
                out_specs=_specs(out_axes, axis_name),
                check_vma=check_vma,
            ),
            **options,
        )
        return self.adopt(function, "jit(shard_map)")

    def adopt(self, function: Callable[..., Any], kind: str | None = None) -> Mapped:
        """Return a function that was mapped by hand as a `Mapped`; `kind` has no effect here."""
        return PlainMapped(function)

    def select(self) -> None:
        """Set the switch that JAX 0.7.0 to 0.9.2 has; later releases have none."""
        if FLAG not in jax.config.values:
            return
        wanted = self.name == NEW_PMAP if self.name in (LEGACY_PMAP, NEW_PMAP) else DEFAULT
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the switch's own, from 0.9.0
            jax.config.update(FLAG, wanted)

    def mesh(
        self, axis_name: Hashable = "i", devices: Sequence[jax.Device] | None = None
    ) -> jax.sharding.Mesh:
        """Return a 1-D mesh over `devices`, or all of the job's."""
        chosen = np.array(jax.devices() if devices is None else list(devices))
        return jax.sharding.Mesh(chosen, (axis_name,))

    def sharding(
        self, axis_name: Hashable = "i", *, axis: int | None = 0
    ) -> jax.sharding.NamedSharding:
        """Return a sharding over `devices` along axis `axis`; None: replicated."""
        mesh = self.mesh(axis_name, self.devices)
        return jax.sharding.NamedSharding(mesh, _spec(axis, axis_name))

    @property
    def devices(self) -> list[jax.Device]:
        """The devices of an argument: this process's under pmap, all of the job's otherwise."""
        return list(jax.local_devices() if self.is_pmap else jax.devices())

    def rows(self, place: Place, *shape: int) -> NDArray[Any]:
        """Return float32 rows `(len(self.devices), *shape)`: under pmap this process's."""
        return place.rows(*shape) if self.is_pmap else place.all_rows(*shape)

    def given(self, rows: NDArray[Any], axis_name: Hashable = "i") -> Any:
        """Return this process's rows, `(local devices, ...)`, as an argument of a map.

        Under pmap they stay a NumPy array; otherwise they become their part of a global
        `jax.Array`.
        """
        if self.is_pmap:
            return rows
        return jax.make_array_from_process_local_data(self.sharding(axis_name), rows)


@dataclass(frozen=True)
class PlainCluster(Cluster):
    """A cluster that prints what its steps did."""

    @property
    def local_devices(self) -> list[jax.Device]:
        """This process's devices."""
        return list(jax.local_devices())

    @property
    def devices(self) -> list[jax.Device]:
        """The devices of all processes."""
        return list(jax.devices())

    def step(self, name: str, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
        """Call `function`, wait for its result and print it; return None if it raised."""
        record: dict[str, Any] = {"name": name, "extra": {}}
        self.steps.append(record)
        try:
            result: R = jax.block_until_ready(function(*args, **kwargs))
        except Exception as error:
            record |= {"outcome": "raised", "exception": error}
            print(f"{name}: raised {type(error).__name__}: {error}")
            return None
        record |= {"outcome": "returned", "value": repr(result)}
        print(f"{name}: returned {record['value']}")
        return result

    def twice(self, function: Callable[..., R], *args: Any) -> R | None:
        """Call `function` in the steps "first call" and "second call"; return the second result."""
        self.step(FIRST_CALL, function, *args)
        return self.step(SECOND_CALL, function, *args)

    def compiled(
        self, name: str, function: Callable[..., Any], *args: Any, watched: str | None = None
    ) -> Compiled | None:
        """Run a step with empty caches and note its compiled programs; None if the step raised."""
        told: list[Compiled] = []

        def compiling() -> Any:
            told.append(compiled_by(lambda: function(*args), watched=watched))
            return told[0].result

        self.step(name, compiling)
        if not told:
            return None
        self.note("programs", told[0].programs)
        return told[0]

    def note(self, key: str, value: Any) -> None:
        """Add a fact (a JSON value) to the step that was last recorded, and print it."""
        self.steps[-1]["extra"][key] = value
        if type(self) is PlainCluster:  # the worker's own keeps it, and prints nothing
            print(f"  {key}: {value}")


def _spec(axis: int | None, axis_name: Hashable) -> Any:
    if axis is None:
        return jax.sharding.PartitionSpec()
    return jax.sharding.PartitionSpec(*[None] * axis, axis_name)


def _specs(axes: Any, axis_name: Hashable) -> Any:
    if isinstance(axes, tuple):
        return tuple(_spec(axis, axis_name) for axis in axes)
    return _spec(axes, axis_name)
