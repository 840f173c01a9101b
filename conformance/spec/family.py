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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from conformance.spec.clause import Check, Declared, Probe, add_clause

Table = Mapping[str, Any]

# What a keyword of `family` may be: a value for all rows, or a function of the rows that it names.
OfRows = Any

# A keyword that is left out is the rows' own field of that name, where a table's rows have one.
_UNSET: Any = object()
_KEYWORDS = tuple(name for name in Declared.__annotations__ if name not in ("expect", "also"))
_TEXTS = ("claim", "title", "left_out")
_IDS = ("fact", "fixes", "cause")


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
    on_cpu: OfRows = _UNSET,
    timing: OfRows = _UNSET,
    only: Callable[..., bool] | None = None,
    also: Iterable[Check] = (),
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
    asked = {
        "claim": claim,
        "expect": expect,
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
        "on_cpu": on_cpu,
        "timing": timing,
        "only": only,
    }
    arguments = {name: value for name, value in asked.items() if value is not _UNSET}
    return declare_rows(id, tables, arguments, also=also)


def declare_rows(
    id: str,
    tables: Mapping[str, Table],
    arguments: Mapping[str, OfRows],
    *,
    also: Iterable[Check] = (),
    defaults: Mapping[str, OfRows] | None = None,
) -> Callable[[Probe], Probe]:
    """Declare a family from its keyword arguments; `defaults` hold where rows have no field.

    ValueError as for `family`.
    """
    named = {name for _, name, _, _ in string.Formatter().parse(id) if name}
    if not tables or named != set(tables):
        raise ValueError(f"family {id!r} has the tables {sorted(tables)}: name each of them once")
    for name, rows in tables.items():
        if not rows:
            raise ValueError(f"family {id!r}: the table {name!r} has no rows; add one")
    of_rows = {**(defaults or {}), **dict(_of_rows(id, tables, arguments)), **arguments}
    if "claim" not in of_rows:
        raise ValueError(f"family {id!r} has no claim, and its rows have none: give claim=")
    families = {id: of_rows} | {f"{id}.{one.suffix}": one.beside(of_rows) for one in also}

    def declare(probe: Probe) -> Probe:
        for template, declared in families.items():
            for keys in itertools.product(*tables.values()):
                _add_clause(probe, template, declared, tables, dict(zip(tables, keys, strict=True)))
        return probe

    return declare


def _add_clause(
    probe: Probe,
    id: str,
    of_rows: Mapping[str, OfRows],
    tables: Mapping[str, Table],
    keys: Mapping[str, str],
) -> None:
    """Add the clause for the rows with these keys, unless `only` leaves it out."""
    rows = {name: tables[name][key] for name, key in keys.items()}
    only = of_rows.get("only")
    if only is not None and not _value_for_rows(only, rows):
        return
    texts = {name: _RowInTexts(keys[name], row) for name, row in rows.items()}
    declared = {"expect": _expect(of_rows["expect"], rows)}
    for name in of_rows.keys() - {"expect", "only"}:
        value = _value_for_rows(of_rows[name], rows)
        if name in _TEXTS:
            value = _text(value, texts)
        elif name in _IDS:
            value = _text(value, keys)
        declared[name] = value
    add_clause(probe, id.format_map(keys), declared, parameters=keys, rows=rows)


@dataclass(frozen=True, slots=True)
class _Field:
    """The field `name` of the row of `table`."""

    table: str
    name: str


def _of_rows(
    id: str, tables: Mapping[str, Table], arguments: Mapping[str, OfRows]
) -> Iterator[tuple[str, _Field]]:
    """Yield the keywords that are fields of the rows; ValueError if two tables' rows have one."""
    for name in _KEYWORDS:
        having = [table for table, rows in tables.items() if _has(next(iter(rows.values())), name)]
        if name in arguments or not having:
            continue
        if len(having) > 1:
            raise ValueError(
                f"family {id!r}: the rows of {' and '.join(having)} both have {name!r}: give "
                f"{name} as a function that chooses one"
            )
        yield name, _Field(having[0], name)


def _has(row: Any, name: str) -> bool:
    return is_dataclass(row) and hasattr(row, name)


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


def _text(value: Any, rows: Mapping[str, Any]) -> Any:
    """Return a template's text for the rows; anything but a text as it is."""
    if not isinstance(value, str):
        return value
    try:
        return value.format_map(rows)
    except KeyError as error:
        raise ValueError(f"the template {value!r} names {error}, which is no table") from None


def _expect(expect: OfRows, rows: Mapping[str, Any]) -> dict[str, Any]:
    by_implementation: Mapping[str, Any] = _value_for_rows(expect, rows)
    return {name: _value_for_rows(one, rows) for name, one in by_implementation.items()}


class _RowInTexts:
    """A row in a template: `{form}` and `{form.text}`."""

    def __init__(self, key: str, row: Any) -> None:
        self._key, self._row = key, row

    def __format__(self, spec: str) -> str:
        return format(self._row if isinstance(self._row, str) else self._key, spec)

    def __getattr__(self, name: str) -> Any:
        if is_dataclass(self._row) and name in {one.name for one in fields(self._row)}:
            return getattr(self._row, name)
        raise ValueError(f"a template names {name!r}, which the row {self._key!r} does not have")
