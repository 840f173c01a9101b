"""`CopyArrays ... same size`: uses of an output in several processes, and the fixes.

The document warns of an integer index that reads a replica, and is silent on every other use: there
legacy pmap is the reference. In one process all uses must work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.errors import COPY_ARRAYS, NO_COLLECTIVE, WITHOUT, needed
from conformance.spec.aspects import SHARDING_TYPE, SPEC
from conformance.spec.clause import devices, processes
from conformance.spec.combining import of_result
from conformance.spec.expectation import along, every, raises, returns, sharded, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.topology import APART, ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

Function = Callable[[Any], Any]

# The uses that are one finding.
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

    def by_numpy(self, array: Any) -> Any:
        """Return NumPy's result of this use."""
        return (self.model or self.use)(array)


# Functions that a jit finds again: what it compiled is kept between the calls.


def sum_of_rows(y: Any) -> Any:
    """The sum over the rows."""
    return y.sum(0)


def first_row(y: Any) -> Any:
    """The first row."""
    return y[0]


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
        lambda x: jax.jit(sum_of_rows)(x),
        lambda x: x.sum(0),
    ),
    Use(
        "jitted-index",
        "A jitted `x[0]`",
        COMPUTATION,
        lambda x: jax.jit(first_row)(x),
        lambda x: x[0],
    ),
    Use("device-get", "`jax.device_get`", FETCH, jax.device_get, np.asarray, unfetchable=True),
    Use("numpy", "`np.asarray`", FETCH, np.asarray, unfetchable=True),
)


def output(impl: Implementation, cluster: Cluster) -> Any:
    """Return an output: one row of three per device."""
    return impl.map(double())(impl.given(cluster.rows(3)))


def of_own_rows(use: Use) -> Callable[[Place], Any]:
    """The use of this process's rows, which are what a pmap returns."""
    return lambda place: use.by_numpy(place.rows(3) * 2)


def of_all_rows(use: Use) -> Callable[[Place], Any]:
    """The use of the global array; of a result that is split, this process's part."""

    def model(place: Place) -> Any:
        used = use.by_numpy(place.all_rows(3) * 2)
        return place.mine(used) if use.split else used

    return model


def right(use: Use) -> Expectation:
    """Expect NumPy's result on this process's rows, as for a pmap's output."""
    return returns(of_own_rows(use), text="what NumPy makes of this process's rows")


def right_of_all(use: Use) -> Expectation:
    """Expect NumPy's result on the rows of all processes, as for a global array."""
    return returns(of_all_rows(use), text="what NumPy makes of all rows")


def refused(use: Use) -> Expectation:
    """The documented error."""
    message = "CopyArrays only supports destination device list of the same size as the array"
    return raises("JaxRuntimeError", message, otherwise=of_own_rows(use))


def unfetchable(use: Use) -> Expectation:
    """Expect the error of fetching an array that has shards in other processes."""
    message = r"[Ff]etching value for `jax\.Array` that spans non-addressable \(non process local\)"
    return raises(RuntimeError, message, phase="fetch", otherwise=of_all_rows(use))


def claim_of(use: Use) -> str:
    """The document's statement, or its silence."""
    if use.refused:
        return "migrate-pmap.copy-arrays"
    return "pmap-silence.multi-process-slice-and-compute"


def cause_of(use: Use) -> str:
    """Return the known issue that a user of legacy pmap meets, where the document describes a
    change.
    """
    if use.refused:
        return "using-an-output-raises-copy-arrays"
    return "global-array-cannot-be-fetched" if use.unfetchable else ""


@family(
    "errors.copy-arrays.{use}",
    use=USES,
    cause=cause_of,
    claim=claim_of,
    title="{use.text} of a mapped function's output, in several processes.",
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
    title="{use.text} of a mapped function's output, in one process, where it must not raise.",
    left_out=APART,
    expect={LEGACY_PMAP: right, NEW_PMAP: right, SHARD_MAP: right_of_all},
)
def used(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """Use an output in one of these ways."""
    cluster.twice(use.use, output(impl, cluster))


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix, the form that it replaces, and the result of each.

    `local`: the fix returns this process's part under shard_map too. `stays`: no collective may
    run, and the result stays on its devices.
    """

    key: str
    text: str
    claim: str
    fixes: str
    fixed: Callable[[Implementation, Any], Any]  # of an output
    model: Function
    faulty: Function
    faulty_model: Function = lambda x: x[0]
    local: bool = False
    stays: bool = False

    def expected(self, implementation: str) -> Expectation:
        """Expect the results of both forms, and what the fixed one communicates."""

        def whole(place: Place) -> Any:
            return (place.all_rows(3) if implementation == SHARD_MAP else place.rows(3)) * 2

        def model(place: Place) -> Any:
            return self.model(place.rows(3) * 2 if self.local else whole(place))

        right = returns(model, text=self.text)
        values = steps(
            without_the_fix=needed(lambda place: self.faulty_model(whole(place)), COPY_ARRAYS),
            from_empty_caches=right,
            first_call=right,
            second_call=right,
        )
        if self.stays:
            return every(values, steps(from_empty_caches=NO_COLLECTIVE), ON_ONE)
        return every(
            values,
            steps(put=returns(whole, text="the rows, as they were")),
            steps(put=sharded("replicated over the devices that the caller named", _replicated)),
        )


def _replicated(place: Place, sharding: Mapping[str, Any]) -> bool:
    everywhere, here = place.topology.devices, place.topology.devices_per_process
    return along()(place, sharding) and len(set(sharding["devices"])) in (here, everywhere)


def _where(step: Step) -> str:
    """Describe the sharding of a step's leaves, each distinct one once."""
    ways = [
        f"{s['type']} {s['spec']}" if s.get("spec") is not None else s["type"]
        for s in (leaf.sharding for leaf in step.leaves)
        if s
    ]
    devices = [s["devices"] for s in (leaf.sharding for leaf in step.leaves) if s]
    both = zip(ways, devices, strict=True)
    return ", ".join(dict.fromkeys(f"{way} on {len(on)} devices" for way, on in both))


def _on_one(place: Place, step: Step) -> tuple[bool, str]:
    """Row after row on device after device of this process, each on one alone."""
    found = [leaf.sharding for leaf in step.leaves]
    ids = [s["devices"] for s in found if s and s["type"] == "SingleDeviceSharding"]
    first = ids[0][0] if ids else 0
    return bool(ids) and ids == [[first + at] for at in range(len(found))], _where(step)


ON_ONE = twice(
    of_result(
        "each row lies on one device, the next one on the next",
        _on_one,
        claims={SHARDING_TYPE, SPEC},
    )
)

FIXES: Mapping[str, Fix] = table(
    Fix(
        "addressable-shards",
        "`x.addressable_shards[0].data` is this process's first row, with its leading "
        "dimension, without communication",
        claim="migrate-pmap.fix-addressable-shards",
        fixes="errors.copy-arrays.integer-index",
        fixed=lambda impl, x: x.addressable_shards[0].data,
        model=lambda x: x[:1],
        faulty=lambda x: x[0],
        local=True,
        stays=True,
    ),
    Fix(
        "device-put",
        "`device_put` that replicates the output, then `x[0]`",
        claim="migrate-pmap.fix-device-put-global",
        fixes="errors.copy-arrays.integer-index",
        fixed=lambda impl, x: jax.device_put(x, impl.sharding(axis=None))[0],
        model=lambda x: x[0],
        faulty=lambda x: x[0],
    ),
    Fix(
        "static-range",
        "Every row is read by an index from a Python `range`, without communication",
        claim="migrate-pmap-later.fix-static-range",
        fixes="errors.copy-arrays.traced-index",
        fixed=lambda impl, x: [x[i] for i in range(x.shape[0])],
        model=list,
        faulty=lambda x: [x[i] for i in jnp.arange(x.shape[0])],
        faulty_model=list,
        stays=True,
    ),
)


@family(
    "errors.copy-arrays.fix-{fix}",
    fix=FIXES,
    claim="{fix.claim}",
    title="{fix.text}.",
    topologies=ONE_AND_SEVERAL,
    needs=devices(2),
    expect=lambda fix: {name: fix.expected(name) for name in IMPLEMENTATIONS},
)
def fixed(impl: Implementation, cluster: Cluster, fix: Fix) -> None:
    """A map's output, used as the document recommends, after the form that it replaces."""
    x = output(impl, cluster)
    cluster.step(WITHOUT, fix.faulty, x)
    if not fix.stays:
        cluster.step("put", jax.device_put, x, impl.sharding(axis=None))
    cluster.compiled("from empty caches", lambda: fix.fixed(impl, x))
    cluster.twice(lambda: fix.fixed(impl, x))
