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
from dataclasses import fields, is_dataclass
from typing import Any

from conformance.catalogue.clause import Clause, Probe, declared
from conformance.catalogue.topology import ONE_PROCESS

Table = Mapping[str, Any]

# What a keyword of `family` may be: a value for all rows, or a function of the rows that it names.
OfRows = Any


def table(*rows: Any) -> dict[str, Any]:
    """Rows by their `key`, in order; ValueError where two have one."""
    found: dict[str, Any] = {}
    for row in rows:
        if row.key in found:
            raise ValueError(f"two rows are called {row.key!r}: rename one")
        found[row.key] = row
    return found


def family(
    id: str,
    *,
    claim: OfRows,
    expect: OfRows,
    title: OfRows = "",
    fact: OfRows = "",
    left_out: OfRows = "",
    cause: OfRows = "",
    needs: OfRows = None,
    topologies: OfRows = ONE_PROCESS,
    fixes: OfRows = None,
    fresh: OfRows = False,
    deadline_s: OfRows = None,
    requires: OfRows = (),
    programs: OfRows = (),
    selects: OfRows = False,
    timing: OfRows = None,
    only: Callable[..., bool] | None = None,
    **tables: Table,
) -> Callable[[Probe], Probe]:
    """Declare the decorated function as the probe of one clause per choice of rows.

    `tables` name the probe's keyword arguments, and the rows that each of them takes, by key. The
    other keywords are `clause`'s. Each is a value, or a function whose parameters are named as the
    tables and are given the chosen rows; so may be each implementation's expectation in `expect`.
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

    def declare(probe: Probe) -> Probe:
        for keys in itertools.product(*tables.values()):
            key_of = dict(zip(tables, keys, strict=True))
            rows = {name: tables[name][key] for name, key in key_of.items()}
            if only is not None and not _given(only, rows):
                continue
            said = {name: _Said(key_of[name], row) for name, row in rows.items()}
            one = declared(
                probe,
                id.format_map(key_of),
                claim=_text(claim, rows, said),
                expect=_expect(expect, rows),
                needs=_given(needs, rows),
                topologies=_given(topologies, rows),
                fixes=_text(fixes, rows, key_of),
                fresh=_given(fresh, rows),
                deadline_s=_given(deadline_s, rows),
                parameters=key_of,
                rows=rows,
                title=_text(title, rows, said),
                fact=_text(fact, rows, key_of),
                left_out=_text(left_out, rows, said),
                cause=_text(cause, rows, key_of),
                requires=_given(requires, rows),
                programs=_given(programs, rows),
                selects=_given(selects, rows),
                timing=_given(timing, rows),
            )
            _append(probe, one)
        return probe

    return declare


def _append(probe: Probe, one: Clause) -> None:
    clauses: list[Clause] = probe.__dict__.setdefault("clauses", [])
    clauses.append(one)


def _given(value: OfRows, rows: Mapping[str, Any]) -> Any:
    """The value, or what the function makes of the rows that its parameters name."""
    if not callable(value):
        return value
    return value(**{name: rows[name] for name in _parameters(value)})


@functools.cache  # a family asks the same few functions for each of its rows
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _text(value: OfRows, rows: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
    given = _given(value, rows)
    if not isinstance(given, str):
        return given
    try:
        return given.format_map(said)
    except KeyError as error:
        raise ValueError(f"the template {given!r} names {error}, which is no table") from None


def _expect(expect: OfRows, rows: Mapping[str, Any]) -> dict[str, Any]:
    given: Mapping[str, Any] = _given(expect, rows)
    return {name: _given(one, rows) for name, one in given.items()}


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
