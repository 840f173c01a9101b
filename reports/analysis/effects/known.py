"""The known changes of an upgrade that no deviation describes.

Both cells do what their clauses expect, so neither has an entry that names a known issue. An entry
of `known.toml` names the known issue or the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from conformance.model.records import JAX
from conformance.model.tables import check_keys
from reports.analysis.comparing.entries import EntryError, like, tables_of
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.store.order import MAPS
from reports.store.outcomes import CellKey

FILE = Path(__file__).with_name("known.toml")
COLUMNS = (*MAPS, JAX)

_LISTS = ("effect", "new_in", "clause", "topology")
_REQUIRED = ("effect", "shape", "clause")


@dataclass(frozen=True, slots=True)
class Known:
    """One known change: which effect, of which shape, in which clauses, and its explanation.

    `shape` is the effect's, with `*` for any text; `new_in` is the implementation that changed,
    `clause` and `topology` are shell patterns. `says` adds to a claim what follows from it here.
    """

    effect: tuple[str, ...]
    shape: str
    clause: tuple[str, ...]
    new_in: tuple[str, ...] = COLUMNS
    topology: tuple[str, ...] = ("*",)
    cause: str = ""
    claim: str = ""
    says: str = ""
    where: str = "an entry"  # its file and number

    def matches(self, shown: ShownEffect, new: CellKey) -> bool:
        """Return whether the entry is about this effect in this cell."""
        return (
            shown.effect.value in self.effect
            and like(self.shape, shown.shape)
            and new.implementation in self.new_in
            and any(fnmatchcase(new.clause, pattern) for pattern in self.clause)
            and any(fnmatchcase(new.topology, pattern) for pattern in self.topology)
        )


def load_known(path: Path = FILE) -> tuple[Known, ...]:
    """Return the entries of a TOML file; EntryError if one is invalid."""
    return tuple(_known(raw, where) for where, raw in tables_of(path, "change"))


def _known(raw: Mapping[str, Any], where: str) -> Known:
    if not isinstance(raw, dict):
        raise EntryError(f"{where}: entries are written [[change]]")
    names = {one.name for one in fields(Known)} - {"where"}
    check_keys(raw, names, _REQUIRED, where, EntryError)
    made = {key: _texts(value, key, where) for key, value in raw.items()}
    for key, there in (("effect", [one.value for one in Effect]), ("new_in", COLUMNS)):
        if unknown := set(made.get(key, ())) - set(there):
            none = ", ".join(sorted(unknown))
            raise EntryError(f"{where}: no {key} is called {none}; there are {', '.join(there)}")
    if bool(made.get("cause")) == bool(made.get("claim")):
        raise EntryError(f"{where}: give either a cause or a claim")
    if bool(made.get("claim")) != bool(made.get("says")):
        raise EntryError(f"{where}: says needs a claim: it states what follows from it")
    return Known(**made, where=where)


def _texts(value: Any, key: str, where: str) -> Any:
    several = key in _LISTS
    texts = value if several and isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise EntryError(f"{where}: {key} must be a text{', or several in a list' * several}")
    return tuple(texts) if several else value
