"""A user's function by name: `module:function` or `file.py:function`, found and imported.

The controller parses a name, a worker imports it; neither imports anything but the standard
library for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class FunctionError(ValueError):
    """A name of a function that means nothing here; the message says what to write."""


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function: its module, or the file that has it, and its name in there.

    `paths` are the folders in which its modules are found.
    """

    module: str
    file: str
    name: str
    paths: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "module": self.module,
            "file": self.file,
            "name": self.name,
            "paths": list(self.paths),
        }


def parse_function(text: str, folder: Path, pythonpath: str = "") -> FunctionName:
    """Read `module:function` or `file.py:function`, as seen from `folder`.

    FunctionError where it is neither, or where there is no such file.
    """
    where, _, name = text.rpartition(":")
    if not where or not all(part.isidentifier() for part in name.split(".")):
        raise FunctionError(f"{text[:60]!r}: write module:function or file.py:function")
    search = tuple(str(folder / one) for one in pythonpath.split(os.pathsep) if one)
    if where.endswith(".py") or os.sep in where:
        file = folder / where
        if not file.is_file():
            raise FunctionError(f"{where}: no such file")
        return FunctionName("", str(file.resolve()), name, (str(file.resolve().parent), *search))
    if not all(part.isidentifier() for part in where.split(".")):
        raise FunctionError(f"{text[:60]!r}: {where} is not the name of a module")
    return FunctionName(where, "", name, (str(folder), *search))


def import_function(record: Mapping[str, Any]) -> Callable[..., Any]:
    """Import what `FunctionName.record` names; ImportError, AttributeError or what it raises."""
    _search(record["paths"])
    module = _file(record["file"]) if record["file"] else importlib.import_module(record["module"])
    found: Any = module
    for part in record["name"].split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{record['name']} is a {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function


def _search(paths: Sequence[str]) -> None:
    sys.path[:0] = [one for one in paths if one not in sys.path]


def _file(file: str) -> Any:
    """Import a file under its own name, as a script beside it would."""
    name = Path(file).stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == file:
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
