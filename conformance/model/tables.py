"""TOML files, as all that read one read it. A worker imports this module: it needs no msgspec."""

from __future__ import annotations

import tomllib
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
