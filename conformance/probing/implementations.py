"""The three implementations behind one small interface: how a probe maps a function over rows.

`map` takes `jax.pmap`'s arguments. Under `shard_map` it does what the migration guide prescribes:
a mesh over the devices, specs in place of axes, and the body's rank restored with a squeeze. So one
probe is the same user program three times, and what it returns can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.probing.describing import sharding_types

FLAG = "jax_pmap_shmap_merge"

Axes = int | None | tuple[Any, ...]


def wrapper_kind(function: Any) -> str:
    """Which implementation made this callable: told from the object, never from a setting."""
    if type(function).__name__ == "PmapFunction":
        return "legacy pmap"
    if type(function).__name__ == "PjitFunction":
        return "jit"
    for layer in (function, *_enclosed(function)):
        file = getattr(getattr(layer, "__code__", None), "co_filename", "").replace("\\", "/")
        # Up to 0.8.0 the new pmap lay in shard_map.py, then in a module of its own.
        if file.endswith(("jax/_src/pmap.py", "jax/_src/shard_map.py")):
            return "new pmap" if hasattr(layer, "lower") else "shard_map"
    return f"{type(function).__name__} {getattr(function, '__qualname__', '')}".strip()


def _enclosed(function: Any) -> list[Any]:
    """The functions in a function's closure: what JAX's traceback filter is wrapped around."""
    cells = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if callable(cell.cell_contents)]


class Mapped:
    """A mapped function that keeps a witness of every call."""

    def __init__(self, function: Any, kind: str, witness: list[dict[str, Any]]) -> None:
        self.function = function
        self._kind = kind
        self._witness = witness

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Noted before the call, so that a call that raises still shows what was called.
        seen: dict[str, Any] = {"wrapper": self._kind, "outputs": []}
        self._witness.append(seen)
        result = self.function(*args, **kwargs)
        seen["outputs"] = sorted(set(sharding_types(result)))
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.function, name)


class Implementation:
    """`name` is one of `names.IMPLEMENTATIONS`; `witness` collects what ran, for one case."""

    def __init__(self, name: str, mapped: Callable[[str], None] = lambda _: None) -> None:
        self.name = name
        self._mapped = mapped
        self.witness: list[dict[str, Any]] = []

    @property
    def is_pmap(self) -> bool:
        """Whether this is one of the two pmaps: inputs and outputs are then this process's."""
        return self.name != SHARD_MAP

    def map(
        self,
        body: Callable[..., Any],
        axis_name: Hashable = "i",
        *,
        in_axes: Axes = 0,
        out_axes: Any = 0,
        devices: Sequence[Any] | None = None,
        check_vma: bool = True,
        **options: Any,
    ) -> Mapped:
        """`body` mapped as `jax.pmap` would; `options` go to `jax.pmap` or, here, `jax.jit`.

        Under shard_map `in_axes` is an int, None, or one of them per argument; `out_axes` an int
        or None; the mesh is over `devices` or all of the cluster's. `check_vma` is shard_map's own.
        """
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

    def adopt(self, function: Any, kind: str | None = None) -> Mapped:
        """A function that the probe mapped by hand, so that its calls are witnessed too.

        For pmap the kind is read off the object; a jit tells nothing of what is in it, so a probe
        names it (`jit(shard_map)`, `smap`), and its outputs' shardings are still proven.
        """
        kind = kind or wrapper_kind(function)
        self._mapped(kind)
        return Mapped(function, kind, self.witness)

    def select(self) -> None:
        """Make `jax.pmap` mean this implementation, where this JAX still has the switch."""
        if FLAG not in jax.config.values:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the switch's own, from 0.9.0
            jax.config.update(FLAG, self.name == NEW_PMAP)

    def mesh(self, axis_name: Hashable = "i", devices: Sequence[Any] | None = None) -> Any:
        """A 1-D mesh over `devices`, or all of the cluster's, in their order."""
        chosen = np.array(jax.devices() if devices is None else list(devices))
        return jax.sharding.Mesh(chosen, (axis_name,))

    def sharding(self, axis_name: Hashable = "i", *, axis: int | None = 0) -> Any:
        """The NamedSharding that the map's mesh gives an input mapped over `axis`.

        Over `self.devices`, which for pmap are this process's, as are pmap's arguments.
        """
        mesh = self.mesh(axis_name, self.devices)
        return jax.sharding.NamedSharding(mesh, _spec(axis, axis_name))

    @property
    def devices(self) -> list[Any]:
        """The devices over which a whole argument of a map lies: pmap's are this process's."""
        return list(jax.local_devices() if self.is_pmap else jax.devices())

    def rows(self, place: Place, *shape: int) -> NDArray[Any]:
        """An argument's rows as this implementation's user writes them, one per `self.devices`.

        Under pmap each process has its own rows; under shard_map all write the same whole array.
        """
        return place.rows(*shape) if self.is_pmap else place.all_rows(*shape)

    def given(self, rows: NDArray[Any], axis_name: Hashable = "i") -> Any:
        """This process's rows as this implementation takes them.

        For pmap they are passed as they are (a NumPy array with one row per local device); for
        shard_map they are stitched into the global array with one row per device of the cluster.
        """
        if self.is_pmap:
            return rows
        return jax.make_array_from_process_local_data(self.sharding(axis_name), rows)


def available() -> Iterable[str]:
    """The implementations that this JAX has, found by asking for each and looking at what came."""
    found = [SHARD_MAP] if hasattr(jax, "shard_map") else []
    for name, kind in ((LEGACY_PMAP, "legacy pmap"), (NEW_PMAP, "new pmap")):
        implementation = Implementation(name)
        implementation.select()
        if wrapper_kind(jax.pmap(lambda x: x)) == kind:
            found.append(name)
    return found


def _spec(axis: int | None, axis_name: Hashable) -> Any:
    if axis is None:
        return jax.sharding.PartitionSpec()
    return jax.sharding.PartitionSpec(*[None] * axis, axis_name)


def _specs(axes: Any, axis_name: Hashable) -> Any:
    if isinstance(axes, tuple):
        return tuple(_spec(axis, axis_name) for axis in axes)
    return _spec(axes, axis_name)
