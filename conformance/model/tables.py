"""TOML files, as all that read one read it. A worker imports this module: it needs no msgspec."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def load_toml(file: Path, error: type[Exception] = ValueError) -> dict[str, Any]:
    """Return what a TOML file says; `error` names the file and what is wrong with it."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise error(f"{file}: cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise error(f"{file} is not valid TOML: {problem}. Correct the file.") from None


def check_keys(
    table: Mapping[str, Any],
    known: Collection[str],
    required: Collection[str],
    where: str,
    error: type[Exception] = ValueError,
) -> None:
    """Raise `error`, which names the keys, if a table has unknown ones or lacks required ones."""
    wrong = []
    if unknown := [key for key in table if key not in known]:
        there = ", ".join(sorted(known))
        wrong.append(
            f"unknown key {', '.join(unknown)}; remove it, or correct it to one of: {there}"
        )
    if missing := [key for key in required if key not in table]:
        needed = ", ".join(sorted(required))
        wrong.append(f"{', '.join(sorted(missing))} is missing; it needs all of: {needed}")
    if wrong:
        raise error(f"{where}: {'; '.join(wrong)}")
