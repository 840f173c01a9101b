"""`CopyArrays ... same size`: using a map's output in several processes, and the fixes.

What the document refuses is an index that is meant to grab a replica; on every other use it is
silent, so that legacy decides there. In one process all of them are to work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import processes
from conformance.catalogue.family import family, table
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.judging.expectation import Expectation, every, noted, raises, returns
from conformance.probing.bodies import double

CALLS = 20  # of each form, when they are timed

Function = Callable[[Any], Any]

# What a reader would call one finding: which uses go together.
INDEX, SLICE, ITERATION, COMPUTATION, FETCH = (
    "errors.copy-arrays.index",
    "errors.copy-arrays.slice",
    "errors.copy-arrays.iteration",
    "errors.copy-arrays.computation",
    "errors.copy-arrays.fetch",
)


@dataclass(frozen=True, slots=True)
class Use:
    """One use of an output. `use` serves NumPy as well as JAX, where no `model` is given.

    `refused` is by the document, of the new pmap, in several processes; `unfetchable` of a global
    array, whose other rows lie in other processes; `split`, that the result is still one row per
    device.
    """

    key: str
    text: str
    fact: str
    use: Function
    model: Function | None = None
    refused: bool = False
    unfetchable: bool = False
    split: bool = False

    def of(self, array: Any) -> Any:
        """What NumPy makes of it."""
        return (self.model or self.use)(array)


USES: Mapping[str, Use] = table(
    Use("integer-index", "`x[0]`", INDEX, lambda x: x[0], refused=True),
    Use("negative-index", "`x[-1]`", INDEX, lambda x: x[-1], refused=True),
    Use("ellipsis-index", "`x[0, ...]`", INDEX, lambda x: x[0, ...], refused=True),
    Use(
        "traced-index",
        "`x[i]` with `i` from `jnp.arange`",
        INDEX,
        lambda x: x[jnp.arange(1)[0]],
        lambda x: x[0],
        refused=True,
    ),
    Use("slice", "`x[:1]`", SLICE, lambda x: x[:1]),
    Use("ellipsis", "`x[...]`", SLICE, lambda x: x[...], split=True),
    Use("column", "`x[:, 0]`", SLICE, lambda x: x[:, 0], split=True),
    Use("iteration", "Iteration over the rows", ITERATION, list),
    Use(
        "computation",
        "`jnp.sum(x, 0)`",
        COMPUTATION,
        lambda x: jnp.sum(x, 0),
        lambda x: x.sum(0),
    ),
    Use("elementwise", "`x + 1`", COMPUTATION, lambda x: x + 1, split=True),
    Use(
        "jitted-computation",
        "A jitted sum over the rows",
        COMPUTATION,
        lambda x: jax.jit(lambda y: y.sum(0))(x),
        lambda x: x.sum(0),
    ),
    Use(
        "jitted-index",
        "A jitted `x[0]`",
        COMPUTATION,
        lambda x: jax.jit(lambda y: y[0])(x),
        lambda x: x[0],
    ),
    Use("device-get", "`jax.device_get`", FETCH, jax.device_get, np.asarray, unfetchable=True),
    Use("numpy", "`np.asarray`", FETCH, np.asarray, unfetchable=True),
)


def output(impl: Any, cluster: Any) -> Any:
    """The output of a map: one row of three per device."""
    return impl.map(double())(impl.given(cluster.rows(3)))


def of_own_rows(use: Use) -> Callable[[Place], Any]:
    """The use of this process's rows, which are what a pmap returns."""
    return lambda place: use.of(place.rows(3) * 2)


def of_all_rows(use: Use) -> Callable[[Place], Any]:
    """The use of the global array; of a result that is split, this process's part."""

    def model(place: Place) -> Any:
        used = use.of(place.all_rows(3) * 2)
        return place.mine(used) if use.split else used

    return model


def right(use: Use) -> Expectation:
    """What a pmap's output gives."""
    return returns(of_own_rows(use), text="what NumPy makes of this process's rows")


def right_of_all(use: Use) -> Expectation:
    """What the global array gives."""
    return returns(of_all_rows(use), text="what NumPy makes of all rows")


def refused(use: Use) -> Expectation:
    """The documented error."""
    return raises("JaxRuntimeError", "CopyArrays .* same size", otherwise=of_own_rows(use))


def unfetchable(use: Use) -> Expectation:
    """The error of whoever fetches an array of which other processes hold a part."""
    message = r"[Ff]etching value for .* non-addressable"
    return raises(RuntimeError, message, otherwise=of_all_rows(use))


def claim_of(use: Use) -> str:
    """The document's statement, or its silence."""
    if use.refused:
        return "migrate-pmap.copy-arrays"
    return "pmap-silence.multi-process-slice-and-compute"


@family(
    "errors.copy-arrays.{use}",
    use=USES,
    fact=lambda use: use.fact,
    claim=claim_of,
    title="{use.text} of a map's output, in several processes.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect={
        LEGACY_PMAP: right,
        NEW_PMAP: lambda use: refused(use) if use.refused else right(use),
        SHARD_MAP: lambda use: unfetchable(use) if use.unfetchable else right_of_all(use),
    },
)
@family(
    "errors.copy-arrays.one-process-{use}",
    use=USES,
    fact="errors.copy-arrays.one-process",
    claim=claim_of,
    title="{use.text} of a map's output, in one process, where no error is to appear.",
    expect={LEGACY_PMAP: right, NEW_PMAP: right, SHARD_MAP: right_of_all},
)
def used(impl: Any, cluster: Any, use: Use) -> None:
    """A use of a map's output."""
    cluster.twice(use.use, output(impl, cluster))


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy, the form that it stands in for, and what it returns of an output.

    `local` says that it returns this process's part under shard_map as well.
    """

    key: str
    text: str
    claim: str
    fixes: str
    fixed: Callable[[Any, Any], Any]  # (implementation, output)
    faulty: Function
    model: Function
    local: bool = False

    def returned(self, implementation: str) -> Expectation:
        """What the fixed form makes of this process's rows, or of all."""

        def model(place: Place) -> Any:
            of_own = self.local or implementation != SHARD_MAP
            return self.model((place.rows(3) if of_own else place.all_rows(3)) * 2)

        return returns(model, text=self.text)


FIXES: Mapping[str, Fix] = table(
    Fix(
        "addressable-shards",
        "`x.addressable_shards[0].data` is this process's first row, with its dimension",
        claim="migrate-pmap.fix-addressable-shards",
        fixes="errors.copy-arrays.integer-index",
        fixed=lambda impl, x: x.addressable_shards[0].data,
        faulty=lambda x: x[:1],
        model=lambda x: x[:1],
        local=True,
    ),
    Fix(
        "device-put",
        "`device_put` of the output, replicated by a NamedSharding, then `x[0]`",
        claim="migrate-pmap.fix-device-put-global",
        fixes="errors.copy-arrays.integer-index",
        fixed=lambda impl, x: jax.device_put(x, impl.sharding(axis=None))[0],
        faulty=lambda x: x[0],
        model=lambda x: x[0],
    ),
    Fix(
        "static-range",
        "Every row in turn, by the indices of a Python `range`",
        claim="migrate-pmap-later.fix-static-range",
        fixes="errors.copy-arrays.traced-index",
        fixed=lambda impl, x: [x[i] for i in range(x.shape[0])],
        faulty=lambda x: [x[i] for i in jnp.arange(x.shape[0])],
        model=list,
    ),
)


def _was_timed(_: Place, seconds: Any) -> bool:
    """The fixed form was timed; the faulty one need not work."""
    return bool(seconds["fixed"] and seconds["fixed"] > 0)


TIMED = noted("seconds", "its seconds were measured", _was_timed)


@family(
    "errors.copy-arrays.fix-{fix}",
    fix=FIXES,
    claim="{fix.claim}",
    title="{fix.text}.",
    fixes=lambda fix: fix.fixes,
    topologies=ONE_AND_SEVERAL,
    expect=lambda fix: {name: fix.returned(name) for name in IMPLEMENTATIONS},
)
def fixed(impl: Any, cluster: Any, fix: Fix) -> None:
    """A map's output, used as the document recommends."""
    cluster.twice(lambda x: fix.fixed(impl, x), output(impl, cluster))


@family(
    "errors.copy-arrays.cost-{fix}",
    fix=FIXES,
    fact="errors.copy-arrays.fix-{fix}",
    claim="{fix.claim}",
    title="{fix.text}: its seconds against those of the faulty form.",
    fixes=lambda fix: fix.fixes,
    topologies=ONE_AND_SEVERAL,
    expect=lambda fix: {name: every(fix.returned(name), TIMED) for name in IMPLEMENTATIONS},
)
def cost(impl: Any, cluster: Any, fix: Fix) -> None:
    """The fixed form against the faulty one, call by call in turn, as far as both work."""
    x = output(impl, cluster)
    forms: dict[str, Function] = {"fixed": lambda y: fix.fixed(impl, y), "faulty": fix.faulty}
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


def _raises(use: Function, x: Any) -> bool:
    try:
        jax.block_until_ready(use(x))
    except Exception:  # whichever: the faulty form's error is the other clauses' subject
        return True
    return False


def _ratio(fixed_s: float | None, faulty_s: float | None) -> float | None:
    return fixed_s / faulty_s if fixed_s and faulty_s else None
