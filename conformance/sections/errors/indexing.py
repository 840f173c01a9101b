"""`CopyArrays ... same size`: using a map's output in several processes, and the fixes.

What the document refuses is an index that is meant to grab a replica; on every other use it is
silent, so that legacy decides there. Each use has a row of a table, as in one process all of them
are to work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, every, noted, raises, returns

CLAIM = "migrate-pmap.copy-arrays"
SILENCE = "pmap-silence.multi-process-slice-and-compute"
SEVERAL = ("2x2", "4x2")
ALL = (*ONE_PROCESS, *SEVERAL)
CALLS = 20  # of each form, when they are timed
UNFETCHABLE = r"[Ff]etching value for .* non-addressable"

Use = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One use of an output. `use` serves NumPy as well as JAX, where no `model` is given."""

    name: str
    text: str
    use: Use
    refused: bool = False  # by the document, of the new pmap, in several processes
    model: Use | None = None
    unfetchable: bool = False  # of a global array, whose other rows lie in other processes

    def of(self, array: Any) -> Any:
        """What NumPy makes of it."""
        return (self.model or self.use)(array)


TABLE = {
    row.name: row
    for row in (
        Row("integer-index", "`x[0]`", lambda x: x[0], refused=True),
        Row("negative-index", "`x[-1]`", lambda x: x[-1], refused=True),
        Row("ellipsis-index", "`x[0, ...]`", lambda x: x[0, ...], refused=True),
        Row(
            "traced-index",
            "`x[i]` with `i` from `jnp.arange`",
            lambda x: x[jnp.arange(1)[0]],
            refused=True,
            model=lambda x: x[0],
        ),
        Row("slice", "`x[:1]`", lambda x: x[:1]),
        Row("ellipsis", "`x[...]`", lambda x: x[...]),
        Row("column", "`x[:, 0]`", lambda x: x[:, 0]),
        Row("iteration", "Iteration over the rows", list),
        Row("computation", "`jnp.sum(x, 0)`", lambda x: jnp.sum(x, 0), model=lambda x: x.sum(0)),
        Row("elementwise", "`x + 1`", lambda x: x + 1),
        Row(
            "jitted-computation",
            "A jitted sum over the rows",
            lambda x: jax.jit(lambda y: y.sum(0))(x),
            model=lambda x: x.sum(0),
        ),
        Row(
            "jitted-index",
            "A jitted `x[0]`",
            lambda x: jax.jit(lambda y: y[0])(x),
            model=lambda x: x[0],
        ),
        Row("device-get", "`jax.device_get`", jax.device_get, model=np.asarray, unfetchable=True),
        Row("numpy", "`np.asarray`", np.asarray, unfetchable=True),
    )
}


def output(impl: Any, cluster: Any) -> Any:
    """The output of a map: one row of three per device."""
    return impl.map(lambda x: x * 2)(impl.given(cluster.rows(3)))


def mine(row: Row) -> Callable[[Place], Any]:
    """The use of this process's rows, which are what a pmap returns."""
    return lambda place: row.of(place.rows(3) * 2)


def whole(row: Row, *, kept: bool) -> Callable[[Place], Any]:
    """The use of the global array; a result that keeps the rows is this process's part of it."""

    def model(place: Place) -> Any:
        used = row.of(place.all_rows(3) * 2)
        return place.mine(used) if kept else used

    return model


def used(impl: Any, cluster: Any, name: str) -> None:
    """A use of a map's output."""
    cluster.twice(TABLE[name].use, output(impl, cluster))


def _expected(row: Row, *, several: bool) -> dict[str, Expectation]:
    local = returns(mine(row), text="what NumPy makes of this process's rows")
    refused = raises("JaxRuntimeError", "CopyArrays .* same size", otherwise=mine(row))
    kept = row.name in ("ellipsis", "elementwise", "column")
    wide: Expectation = returns(whole(row, kept=kept), text="what NumPy makes of all rows")
    if row.unfetchable and several:
        wide = raises(RuntimeError, UNFETCHABLE, otherwise=whole(row, kept=False))
    new = refused if row.refused and several else local
    return {LEGACY_PMAP: local, NEW_PMAP: new, SHARD_MAP: wide}


for _row in TABLE.values():
    clause(
        f"errors.copy-arrays.{_row.name}",
        claim=CLAIM if _row.refused else SILENCE,
        title=f"{_row.text} of a map's output, in several processes.",
        needs=processes(2),
        topologies=SEVERAL,
        expect=_expected(_row, several=True),
        parameters={"name": _row.name},
    )(used)
    clause(
        f"errors.copy-arrays.one-process-{_row.name}",
        claim=CLAIM if _row.refused else SILENCE,
        title=f"{_row.text} of a map's output, in one process, where no error is to appear.",
        expect=_expected(_row, several=False),
        parameters={"name": _row.name},
    )(used)


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy, the form that it stands in for, and what it returns of an output."""

    name: str
    text: str
    claim: str
    fixes: str
    fixed: Callable[[Any, Any], Any]  # (implementation, output)
    faulty: Use
    model: Use
    local: bool = False  # returns this process's part under shard_map as well


FIXES = {
    fix.name: fix
    for fix in (
        Fix(
            "addressable-shards",
            "`x.addressable_shards[0].data` is this process's first row, with its dimension",
            "migrate-pmap.fix-addressable-shards",
            "integer-index",
            lambda impl, x: x.addressable_shards[0].data,
            lambda x: x[:1],
            lambda x: x[:1],
            local=True,
        ),
        Fix(
            "device-put",
            "`device_put` of the output, replicated by a NamedSharding, then `x[0]`",
            "migrate-pmap.fix-device-put-global",
            "integer-index",
            lambda impl, x: jax.device_put(x, impl.sharding(axis=None))[0],
            lambda x: x[0],
            lambda x: x[0],
        ),
        Fix(
            "static-range",
            "Every row in turn, by the indices of a Python `range`",
            "migrate-pmap-later.fix-static-range",
            "traced-index",
            lambda impl, x: [x[i] for i in range(x.shape[0])],
            lambda x: [x[i] for i in jnp.arange(x.shape[0])],
            list,
        ),
    )
}


def _returns(fix: Fix) -> dict[str, Expectation]:
    local = returns(lambda place: fix.model(place.rows(3) * 2), text=fix.text)
    wide = returns(lambda place: fix.model(place.all_rows(3) * 2), text=fix.text)
    return {LEGACY_PMAP: local, NEW_PMAP: local, SHARD_MAP: local if fix.local else wide}


def fixed(impl: Any, cluster: Any, name: str) -> None:
    """A map's output, used as the document recommends."""
    cluster.twice(lambda x: FIXES[name].fixed(impl, x), output(impl, cluster))


def cost(impl: Any, cluster: Any, name: str) -> None:
    """The fixed form against the faulty one, call by call in turn, as far as both work."""
    fix, x = FIXES[name], output(impl, cluster)
    forms: dict[str, Use] = {"fixed": lambda y: fix.fixed(impl, y), "faulty": fix.faulty}
    seconds: dict[str, list[float]] = {form: [] for form in forms}

    def measure() -> Any:
        for form in ("fixed", "faulty"):
            if form == "faulty" and _raises(forms[form], x):
                del forms[form]
        for _ in range(CALLS):
            for form, use in forms.items():
                began = time.perf_counter()
                result = jax.block_until_ready(use(x))
                seconds[form].append(time.perf_counter() - began)
                if form == "fixed":
                    last = result
        return last

    cluster.step("in turn", measure)
    medians = {form: statistics.median(s) if s else None for form, s in seconds.items()}
    cluster.note("seconds", medians)
    cluster.note("ratio", _ratio(medians["fixed"], medians["faulty"]))


def _raises(use: Use, x: Any) -> bool:
    try:
        jax.block_until_ready(use(x))
    except Exception:  # whichever: the faulty form's error is the other clauses' subject
        return True
    return False


def _ratio(fixed_s: float | None, faulty_s: float | None) -> float | None:
    return fixed_s / faulty_s if fixed_s and faulty_s else None


def _timed(_: Place, seconds: Any) -> bool:
    """The fixed form was timed; the faulty one need not work."""
    return bool(seconds["fixed"] and seconds["fixed"] > 0)


for _fix in FIXES.values():
    clause(
        f"errors.copy-arrays.fix-{_fix.name}",
        claim=_fix.claim,
        title=f"{_fix.text}.",
        fixes=f"errors.copy-arrays.{_fix.fixes}",
        topologies=ALL,
        expect=_returns(_fix),
        parameters={"name": _fix.name},
    )(fixed)
    clause(
        f"errors.copy-arrays.cost-{_fix.name}",
        claim=_fix.claim,
        title=f"{_fix.text}: its seconds against those of the faulty form.",
        fixes=f"errors.copy-arrays.{_fix.fixes}",
        topologies=ALL,
        expect={
            name: every(one, noted("seconds", "its seconds were measured", _timed))
            for name, one in _returns(_fix).items()
        },
        parameters={"name": _fix.name},
    )(cost)
