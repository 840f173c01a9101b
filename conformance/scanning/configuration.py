"""Read `[tool.pmap-conformance]` from the nearest pyproject.toml above what is scanned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.model.tables import load_toml

FILE, TABLE = "pyproject.toml", "pmap-conformance"
_TEXTS = {"from": "old", "to": "new", "fail-on": "fail_on"}
_LISTS = {"exclude": "exclude", "ignore": "ignore"}


class ConfigurationError(ValueError):
    """An invalid table; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A project's settings for each scan; options of the command line take precedence."""

    old: str = ""
    new: str = ""
    fail_on: str = ""
    exclude: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def find_configuration(start: Path) -> Configuration:
    """Return the configuration of the folder `start` or the nearest one above; an empty one if
    none.
    """
    folder = start.resolve()
    for one in (folder, *folder.parents):
        file = one / FILE
        if file.is_file():
            return load_configuration(file)
    return Configuration()


def load_configuration(file: Path) -> Configuration:
    """Return the configuration in a pyproject.toml; ConfigurationError names the wrong key."""
    raw = load_toml(file, ConfigurationError)
    tools = raw.get("tool", {})
    table: Any = tools.get(TABLE, {}) if isinstance(tools, Mapping) else {}
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: [tool.{TABLE}] must be a table")
    if unknown := sorted(table.keys() - {*_TEXTS, *_LISTS}):
        known = ", ".join((*_TEXTS, *_LISTS))
        raise ConfigurationError(
            f"{file}: [tool.{TABLE}] has no {', '.join(unknown)}; it has {known}"
        )
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in _TEXTS:
            if not isinstance(value, str):
                raise ConfigurationError(f"{file}: [tool.{TABLE}] {key} must be a text")
            found[_TEXTS[key]] = value
        else:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ConfigurationError(f"{file}: [tool.{TABLE}] {key} must be a list of texts")
            found[_LISTS[key]] = tuple(value)
    return Configuration(**found)
