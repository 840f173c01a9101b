"""The three implementations behind one small interface: how a probe maps a function over rows.

`map` takes `jax.pmap`'s arguments. Under `shard_map` it does what the migration guide prescribes: a
mesh over the devices, specs in place of axes, and the body's rank restored with a squeeze. So one
probe is the same user program three times, and its results can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.worker.describing import sharding_types
from conformance.worker.plain import PlainImplementation, PlainMapped
from conformance.worker.proving import Traced, watched


def wrapper_kind(function: Any) -> str:
    """Return which implementation made this callable, read from the object, never from a
    setting.
    """
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
    """Return the functions in a function's closure, inside JAX's traceback filter."""
    cells = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if callable(cell.cell_contents)]


class WitnessedMapped(PlainMapped):
    """A mapped function that records a witness of every call: its kind, what it traced and
    returned.
    """

    def __init__(
        self,
        function: Any,
        kind: str,
        witness: list[dict[str, Any]],
        traced: Traced,
        began: int,
    ) -> None:
        super().__init__(function)
        self._kind = kind
        self._witness = witness
        self._traced = traced
        # A compiled stage traces nothing any more: it was made of what the case traced before.
        self._seen = traced.since(began) if hasattr(function, "as_text") else set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Noted before the call, so that a call that raises still shows what was called.
        seen: dict[str, Any] = {"wrapper": self._kind, "outputs": [], "raised": True}
        self._witness.append(seen)
        mark = len(self._traced.names)
        try:
            result = self.function(*args, **kwargs)
        finally:
            self._seen |= self._traced.since(mark)
            seen["traced"] = sorted(self._seen)
        seen["raised"] = False
        seen["outputs"] = sorted(set(sharding_types(result)))
        return result

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if not callable(value):
            return value

        def watched_call(*args: Any, **kwargs: Any) -> Any:
            mark = len(self._traced.names)
            try:
                return value(*args, **kwargs)
            finally:
                self._seen |= self._traced.since(mark)

        return watched_call


class WitnessedImplementation(PlainImplementation):
    """An implementation whose `witness` collects what ran in one case; `mapped` receives each map's
    kind.
    """

    def __init__(self, name: str, mapped: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(name)
        self._mapped = mapped
        self.witness: list[dict[str, Any]] = []
        self._traced = watched()
        self._began = len(self._traced.names)

    def adopt(self, function: Callable[..., Any], kind: str | None = None) -> WitnessedMapped:
        """Return `function` as one whose calls add to `witness`.

        Its kind is `kind`, by default read off the function.
        """
        # What a kind is called proves nothing: what its calls trace does.
        kind = kind or wrapper_kind(function)
        self._mapped(kind)
        return WitnessedMapped(function, kind, self.witness, self._traced, self._began)


def available() -> tuple[list[str], list[str]]:
    """Return the implementations that this JAX has, and the kinds of map that match none of them.

    Determined by requesting each and examining the result: a map of an unknown kind does not prove
    that an implementation was removed.
    """
    found: list[str] = []
    unknown: list[str] = []
    if hasattr(jax, "shard_map"):
        found.append(SHARD_MAP)
    else:
        unknown.append("no jax.shard_map")
    for name, wanted in ((LEGACY_PMAP, "legacy pmap"), (NEW_PMAP, "new pmap")):
        implementation = WitnessedImplementation(name)
        implementation.select()
        kind = wrapper_kind(jax.pmap(lambda x: x)) if hasattr(jax, "pmap") else "no jax.pmap"
        if kind == wanted:
            found.append(name)
        elif kind not in ("legacy pmap", "new pmap"):
            unknown.append(kind)
    return found, sorted(set(unknown))
