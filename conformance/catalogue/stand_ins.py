"""Stand-ins for JAX, with which a process imports the catalogue's modules but does not run them.

A section's module imports JAX at its top, as a user's program does, but only workers run what is
written below it. A controller and the command line tools read clauses and judge observations, and
importing JAX would cost them 0.4 to 6 s and 200 MB. `loading` therefore imports the modules within
`jax_left_out()`, where `import jax` binds a stand-in:

* While the modules are imported, an attribute of a stand-in is a `Name`. A row may hold it, call it
  and take attributes of it, which gives other names; anything else raises `JaxLeftOutError`.
* Afterwards an attribute of a stand-in is JAX's own; the first access imports JAX. A `Name` stays
  what it is: a process that runs programs imports JAX before it loads the catalogue.

Where JAX is imported already, as in a worker, `jax_left_out()` does nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

PACKAGE = "jax"
# What their functions return is computed: no row may ask for it as its module is imported.
COMPUTE = ("jax.lax", "jax.nn", "jax.numpy", "jax.random", "jax.scipy")


class JaxLeftOutError(TypeError):
    """Code used JAX in a process that loaded the catalogue without JAX."""


@contextmanager
def jax_left_out() -> Iterator[None]:
    """Let `import jax` bind stand-ins; no effect if JAX is already imported."""
    if PACKAGE in sys.modules:
        yield
        return
    sys.meta_path.insert(0, _FINDER)
    try:
        yield
    finally:
        sys.meta_path.remove(_FINDER)
        for name in [name for name in sys.modules if _of_jax(name)]:
            del sys.modules[name]


class Name:
    """A stand-in for a name of JAX, such as `jax.numpy.sum`: never looked up, never called."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.__name__ = text.rpartition(".")[2]

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self._text}.{name}")

    def __call__(self, *arguments: object, **named: object) -> Name:
        if _FINDER not in sys.meta_path or self._text.startswith(tuple(f"{m}." for m in COMPUTE)):
            self._refuse()
        return Name(f"{self._text}(...)")

    def __repr__(self) -> str:
        return self._text

    def _refuse(self, *_: object) -> NoReturn:
        raise JaxLeftOutError(
            f"{self._text} is used in a process that loads the catalogue without JAX: compute with "
            "NumPy as a module is loaded; import jax first in a process that runs programs"
        )

    # Without these, Python would answer by the identity of the stand-in.
    __eq__ = __ne__ = __bool__ = __len__ = __iter__ = __contains__ = __instancecheck__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = object.__hash__


class _Module(ModuleType):
    """A stand-in for a module of JAX, which imports it if it is needed after loading."""

    def __getattr__(self, name: str) -> Any:
        if _FINDER not in sys.meta_path:
            return getattr(importlib.import_module(self.__name__), name)
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    """An import finder for JAX's modules, which takes precedence."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if _of_jax(name) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is nothing to execute."""


_FINDER = _Finder()


def _of_jax(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE
