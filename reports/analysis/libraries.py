"""What libraries do beside releases of JAX: `reports/published/libraries.json`, a pair a line."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reports.store.input_error import InputError
from reports.store.order import version_order

FILE = Path(__file__).parents[1] / "published" / "libraries.json"
SCHEMA = 1


class LibrariesError(InputError):
    """The file of libraries cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a function of a library does: a note on its result, what it warns of, what it raises."""

    note: str = ""
    warning: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A library of one version beside one JAX: what its import does, and its functions.

    `pinned` is whether the version was asked for; else it is the newest that could be installed.
    `switches` is what the import changes in JAX.
    """

    library: str
    version: str
    jax: str
    python: str
    pinned: bool = False
    warning: str = ""
    error: str = ""
    switches: str = ""
    uses: Mapping[str, Use] = field(default_factory=dict)


def from_records(records: Iterable[Mapping[str, Any]]) -> tuple[Pair, ...]:
    """The pairs of records, by library, JAX and version."""
    found = (
        Pair(**{**one, "uses": {name: Use(**use) for name, use in one.get("uses", {}).items()}})
        for one in records
    )
    return tuple(
        sorted(
            found, key=lambda one: (one.library, version_order(one.jax), version_order(one.version))
        )
    )


@dataclass(frozen=True, slots=True)
class Outgrown:
    """A library whose version beside an older JAX warns, and one beside a newer JAX does not.

    `warns` are its functions that warn, with what the first of them says.
    """

    library: str
    old: str
    new: str
    warns: tuple[str, ...]
    warning: str


def outgrown(pairs: Iterable[Pair], old_jax: str, new_jax: str) -> tuple[Outgrown, ...]:
    """Return the libraries to upgrade with JAX, by what is installed beside both releases."""
    installed = {(one.library, one.jax): one for one in pairs if not one.pinned}
    found = []
    for (library, jax), old in installed.items():
        new = installed.get((library, new_jax))
        if jax != old_jax or new is None or new.version == old.version:
            continue
        warns = [
            (name, use.warning)
            for name, use in old.uses.items()
            if use.warning and not new.uses.get(name, Use(warning="not there")).warning
        ]
        if warns:
            names = tuple(name for name, _ in warns)
            found.append(Outgrown(library, old.version, new.version, names, warns[0][1]))
    return tuple(found)


def as_text(pairs: Iterable[Pair]) -> str:
    """The file, a pair a line."""
    lines = ",\n".join(f"  {json.dumps(_filled(asdict(one)))}" for one in pairs)
    return f'{{"schema": {SCHEMA},\n "pairs": [\n{lines}\n ]}}\n'


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what is empty; a function that just works stays, as an empty one."""
    uses = {name: {k: v for k, v in use.items() if v} for name, use in record["uses"].items()}
    return {key: value for key, value in {**record, "uses": uses}.items() if value}


@functools.cache
def load_libraries(file: Path = FILE) -> tuple[Pair, ...]:
    """Read the file. LibrariesError says what is wrong with it."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        if raw["schema"] != SCHEMA:
            raise LibrariesError(f"{file}: it has schema {raw['schema']}, and this reads {SCHEMA}")
        return from_records(raw["pairs"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise LibrariesError(f"{file}: {error}") from error
