"""A table of clauses: many rows, one probe, and a line that says what must happen to each of them.

    @family(
        "indexing.access.{form}",
        form=FORMS,                       # {"at-get": Form("`x.at[0].get()`", ...), ...}
        claim="pmap-silence.access-cost",
        title="{form.text} moves no more than it has to.",
        expect={LEGACY_PMAP: lambda form: ..., NEW_PMAP: ..., SHARD_MAP: ...},
    )
    def read(impl, cluster, form):
        ...

A row's key is written once, in its table, and stands in the clause's id as it is, so that whoever
looks for an id finds the row. With several tables there is a clause for every choice of one row
from each (`only` leaves some out).
"""

from __future__ import annotations

import functools
import inspect
import itertools
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from conformance.spec.clause import Clause, Probe, declared
from conformance.spec.topology import ONE_PROCESS

Table = Mapping[str, Any]

# What a keyword of `family` may be: a value for all rows, or a function of the rows that it names.
OfRows = Any

# A keyword that is left out is the rows' own field of that name, where a table's rows have one.
_UNSET: Any = object()
_DEFAULTS: Mapping[str, Any] = {
    "title": "",
    "fact": "",
    "left_out": "",
    "cause": "",
    "needs": None,
    "topologies": ONE_PROCESS,
    "fixes": None,
    "fresh": False,
    "deadline_s": None,
    "requires": (),
    "programs": (),
    "selects": False,
    "timing": None,
}


def table(*rows: Any) -> dict[str, Any]:
    """Return rows by their `key`, in order; ValueError if two rows have the same key."""
    found: dict[str, Any] = {}
    for row in rows:
        if row.key in found:
            raise ValueError(f"two rows are called {row.key!r}: rename one")
        found[row.key] = row
    return found


def family(
    id: str,
    *,
    claim: OfRows = _UNSET,
    expect: OfRows,
    title: OfRows = _UNSET,
    fact: OfRows = _UNSET,
    left_out: OfRows = _UNSET,
    cause: OfRows = _UNSET,
    needs: OfRows = _UNSET,
    topologies: OfRows = _UNSET,
    fixes: OfRows = _UNSET,
    fresh: OfRows = _UNSET,
    deadline_s: OfRows = _UNSET,
    requires: OfRows = _UNSET,
    programs: OfRows = _UNSET,
    selects: OfRows = _UNSET,
    timing: OfRows = _UNSET,
    only: Callable[..., bool] | None = None,
    **tables: Table,
) -> Callable[[Probe], Probe]:
    """Declare the decorated function as the probe of one clause per choice of rows.

    `tables` name the probe's keyword arguments, and the rows that each of them takes, by key. The
    other keywords are `clause`'s. Each is a value, or a function whose parameters are named as the
    tables and are given the chosen rows; so may be each implementation's expectation in `expect`.
    One that is left out is the field of that name of the rows, where the rows of one table are of a
    dataclass that has it (`topologies`, `fact`, ...), and else `clause`'s default.
    Texts are templates: in `id` and `fact` `{form}` is the row's key; in the others `{form}` is the
    row where that is a text, else its key, and `{form.text}` an attribute of it. `only` is such a
    function too: whether there is a clause for these rows. ValueError where a table is empty, a key
    is no lower-case word, or as for `clause`.
    """
    named = {name for _, name, _, _ in string.Formatter().parse(id) if name}
    if not tables or named != set(tables):
        raise ValueError(f"family {id!r} has the tables {sorted(tables)}: name each of them once")
    for name, rows in tables.items():
        if not rows:
            raise ValueError(f"family {id!r}: the table {name!r} has no rows")
    asked = {
        "claim": claim,
        "title": title,
        "fact": fact,
        "left_out": left_out,
        "cause": cause,
        "needs": needs,
        "topologies": topologies,
        "fixes": fixes,
        "fresh": fresh,
        "deadline_s": deadline_s,
        "requires": requires,
        "programs": programs,
        "selects": selects,
        "timing": timing,
    }
    of_rows = {
        name: _of_rows(id, name, tables) if value is _UNSET else value
        for name, value in asked.items()
    }

    def declare(probe: Probe) -> Probe:
        for keys in itertools.product(*tables.values()):
            key_of = dict(zip(tables, keys, strict=True))
            rows = {name: tables[name][key] for name, key in key_of.items()}
            if only is not None and not _value_for_rows(only, rows):
                continue
            said = {name: _Said(key_of[name], row) for name, row in rows.items()}
            one = declared(
                probe,
                id.format_map(key_of),
                expect=_expect(expect, rows),
                parameters=key_of,
                rows=rows,
                **{name: _value_for_rows(of_rows[name], rows) for name in _VALUES},
                **{name: _text(of_rows[name], rows, said) for name in _TEXTS},
                **{name: _text(of_rows[name], rows, key_of) for name in _IDS},
            )
            _append(probe, one)
        return probe

    return declare


_VALUES = (
    "needs",
    "topologies",
    "fresh",
    "deadline_s",
    "requires",
    "programs",
    "selects",
    "timing",
)
_TEXTS = ("claim", "title", "left_out")
_IDS = ("fact", "fixes", "cause")


@dataclass(frozen=True, slots=True)
class _Field:
    """The field `name` of the row of `table`."""

    table: str
    name: str


def _of_rows(id: str, name: str, tables: Mapping[str, Table]) -> Any:
    """Return the value of an omitted keyword: a field of the rows, or the default."""
    having = [table for table, rows in tables.items() if _has(next(iter(rows.values())), name)]
    if len(having) > 1:
        raise ValueError(
            f"family {id!r}: the rows of {' and '.join(having)} both have {name!r}: give {name} as "
            "a function of the one that is meant"
        )
    if having:
        return _Field(having[0], name)
    if name not in _DEFAULTS:
        raise ValueError(f"family {id!r} has no {name}, and neither have its rows")
    return _DEFAULTS[name]


def _has(row: Any, name: str) -> bool:
    return is_dataclass(row) and hasattr(row, name)


def _append(probe: Probe, one: Clause) -> None:
    clauses: list[Clause] = probe.__dict__.setdefault("clauses", [])
    clauses.append(one)


def _value_for_rows(value: OfRows, rows: Mapping[str, Any]) -> Any:
    """Return the value, or the result of the function called with the rows that its parameters
    name.
    """
    if isinstance(value, _Field):
        return getattr(rows[value.table], value.name)
    if not callable(value):
        return value
    return value(**{name: rows[name] for name in _parameters(value)})


@functools.cache  # a family asks the same few functions for each of its rows
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _text(value: OfRows, rows: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
    given = _value_for_rows(value, rows)
    if not isinstance(given, str):
        return given
    try:
        return given.format_map(said)
    except KeyError as error:
        raise ValueError(f"the template {given!r} names {error}, which is no table") from None


def _expect(expect: OfRows, rows: Mapping[str, Any]) -> dict[str, Any]:
    given: Mapping[str, Any] = _value_for_rows(expect, rows)
    return {name: _value_for_rows(one, rows) for name, one in given.items()}


class _Said:
    """A row in a template: `{form}` and `{form.text}`."""

    def __init__(self, key: str, row: Any) -> None:
        self._key, self._row = key, row

    def __format__(self, spec: str) -> str:
        return format(self._row if isinstance(self._row, str) else self._key, spec)

    def __getattr__(self, name: str) -> Any:
        if is_dataclass(self._row) and name in {one.name for one in fields(self._row)}:
            return getattr(self._row, name)
        raise ValueError(f"a template names {name!r}, which the row {self._key!r} does not have")
