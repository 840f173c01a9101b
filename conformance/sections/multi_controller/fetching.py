"""Arrays that are not all here: printed, taken apart, gathered, replicated, read shard by shard."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from conformance.sections.multi_controller import (
    NOT_HERE,
    WIDTH,
    local_parts,
    notes_text,
    row_of,
    say,
    spread,
)
from conformance.spec.arrays import returns_host
from conformance.spec.aspects import EXCEPTION, RESULT
from conformance.spec.clause import clause, processes
from conformance.spec.columns import of_jax
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, raises, returns, steps, twice
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="multi-process.local-data-needed", needs=processes(2), topologies=SEVERAL_PROCESSES
)


def over_all(cluster: Cluster) -> Any:
    """An array of a row for each device, over all of them."""
    return jax.device_put(cluster.all_rows(WIDTH), spread(row_of(jax.devices()), "a"))


def printed(array: Any) -> str:
    """Return the text that `print` writes."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        print(array)
    return written.getvalue().removesuffix("\n")


@dataclass(frozen=True, slots=True)
class Use:
    """Something done with an array that needs its data here, and the finding that it varies."""

    key: str
    text: str
    program: Callable[[Any], Any]
    fact: str
    claim: str = "multi-process.local-data-needed"


PRINTING = "multi-process.print-non-addressable"

USES: Mapping[str, Use] = table(
    Use("print", "print(x)", printed, "print", PRINTING),
    Use("f-string", "f'{x}'", lambda x: f"{x}", "print", PRINTING),
    Use("repr", "repr(x)", repr, "print", PRINTING),
    Use("item", "x.item(0, 0)", lambda x: x.item(0, 0), "number"),
    Use("iterate", "[row for row in x]", list, "iterate"),
    Use("pickle", "pickle.dumps(x)", pickle.dumps, "number"),
)


@family(
    "multi_controller.fetch.{use}",
    use=USES,
    title="`{use.text}` of an array that spans several processes.",
    fact=lambda use: f"multi_controller.fetch.{use.fact}",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(twice(NOT_HERE)),
)
def fetch(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """Use all data of an array of which each process has a part."""
    array = over_all(cluster)
    cluster.twice(lambda: use.program(array))


NUMBER = 7.0
HERE = returns(lambda place: np.float32(NUMBER), text="the number")


def _where_it_is(place: Place, step: Step) -> tuple[bool, str]:
    is_last = place.process == place.topology.processes - 1
    return (HERE if is_last else NOT_HERE).check_step(place, step)


@DEFAULTS.clause(
    "multi_controller.fetch.float-elsewhere",
    fact="multi_controller.fetch.number",
    expect=of_jax(
        twice(
            OfEachStep(
                f"the last process {HERE.text}; the others {NOT_HERE.text}",
                _where_it_is,
                claims=RESULT | {EXCEPTION},
            )
        )
    ),
)
def float_elsewhere(impl: Implementation, cluster: Cluster) -> None:
    """`float(x)` of a single number on a device of the last process."""
    number = jax.device_put(np.float32(NUMBER), spread(row_of(jax.devices()[-1:])))
    cluster.twice(lambda: np.float32(float(number)))


@DEFAULTS.clause(
    "multi_controller.fetch.closed-over",
    expect=of_jax(twice(raises(RuntimeError, r"^Closing over jax\.Array that spans non-addr"))),
)
def closed_over(impl: Implementation, cluster: Cluster) -> None:
    """A jitted function closes over an array that spans several processes."""
    array = over_all(cluster)
    cluster.twice(lambda: jax.jit(lambda x: x + array)(array))


# --- Where the data need not be fetched -----------------------------------------------------------


@described("this process's rows, plus one")
def added(place: Place) -> Any:
    return place.rows(WIDTH) + 1


@DEFAULTS.clause("multi_controller.fetch.added", expect=of_jax(twice(returns(added))))
def eagerly_added(impl: Implementation, cluster: Cluster) -> None:
    """`x + 1` of an array that spans several processes, without jit."""
    array = over_all(cluster)
    cluster.twice(lambda: array + 1)


@described("all rows")
def every_row(place: Place) -> Any:
    return place.all_rows(WIDTH)


@DEFAULTS.clause("multi_controller.fetch.held-whole", expect=of_jax(twice(returns_host(every_row))))
def held_whole(impl: Implementation, cluster: Cluster) -> None:
    """`np.asarray(x)` of an array of which each process's devices together hold all rows."""
    places = np.array(jax.devices()).reshape(jax.process_count(), -1)
    by_row = jax.sharding.NamedSharding(
        jax.sharding.Mesh(places, ("process", "row")), jax.sharding.PartitionSpec("row")
    )
    array = jax.device_put(cluster.all_rows(WIDTH), by_row)
    cluster.twice(lambda: np.asarray(array))


@DEFAULTS.clause(
    "multi_controller.fetch.put-under-guard",
    claim="multi-process.device-put-full-array",
    expect=of_jax(twice(returns(every_row))),
)
def put_under_guard(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` over all processes' devices under `jax.transfer_guard("disallow")`."""
    rows = cluster.all_rows(WIDTH)
    everywhere = spread(row_of(jax.devices()))

    def put() -> Any:
        with jax.transfer_guard("disallow"):
            return jax.device_put(rows, everywhere)

    cluster.twice(put)


# --- Gathered by all processes --------------------------------------------------------------------


@DEFAULTS.clause(
    "multi_controller.fetch.replicate-then-print",
    claim="multi-process.fix-replicate-then-print",
    fixes="multi_controller.fetch.print",
    expect=of_jax(
        twice(
            notes_text(
                "the whole array, in process 0 alone",
                lambda place: str(place.all_rows(WIDTH)) if place.process == 0 else "",
            )
        )
    ),
)
def replicate_then_print(impl: Implementation, cluster: Cluster) -> None:
    """All processes replicate the array with `device_put`, then process 0 alone prints it."""
    array = over_all(cluster)

    def show() -> str:
        whole = jax.device_put(array, spread(array.sharding.mesh))
        return printed(whole) if jax.process_index() == 0 else ""

    for step in ("first call", "second call"):
        say(cluster, step, show)


@described("every process's rows, in a stack of one block per process")
def stacked(place: Place) -> Any:
    topology = place.topology
    return place.all_rows(WIDTH).reshape(topology.processes, topology.devices_per_process, WIDTH)


@described("every process's rows, one after the other")
def joined(place: Place) -> Any:
    return place.all_rows(WIDTH)


@described("this process's rows")
def only_own(place: Place) -> Any:
    return place.rows(WIDTH)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the call, and what it makes of each process's own NumPy rows."""

    key: str
    text: str
    gather: Callable[[Any], Any]
    model: Model


FORMS: Mapping[str, Form] = table(
    Form(
        "stacked",
        "process_allgather(rows)",
        lambda rows: multihost_utils.process_allgather(rows),
        stacked,
    ),
    Form(
        "tiled",
        "process_allgather(rows, tiled=True)",
        lambda rows: multihost_utils.process_allgather(rows, tiled=True),
        joined,
    ),
    Form(
        "of-a-tree",
        "process_allgather({'a': [rows]})['a'][0]",
        lambda rows: multihost_utils.process_allgather({"a": [rows]})["a"][0],
        stacked,
    ),
)


@family(
    "multi_controller.gather.{form}",
    form=FORMS,
    claim="multi-process.fix-process-allgather",
    title="`{form.text}` of each process's NumPy rows.",
    fact="multi_controller.gather",
    topologies=SEVERAL_PROCESSES,
    left_out="outputs.host.allgather tests one process",
    expect=lambda form: of_jax(
        twice(returns_host(form.model, mistakes={"this process's own rows": only_own}))
    ),
)
def gather(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """Every process gets what all of them have."""
    rows = cluster.rows(WIDTH)
    cluster.twice(lambda: form.gather(rows))


@clause(
    "multi_controller.gather.one-process",
    claim="multi-process.fix-process-allgather",
    fact="multi_controller.gather",
    expect=of_jax(twice(returns_host(stacked))),
)
def gather_alone(impl: Implementation, cluster: Cluster) -> None:
    """`process_allgather(rows)` of NumPy rows in one process stacks them, as in several."""
    rows = cluster.rows(WIDTH)
    cluster.twice(lambda: multihost_utils.process_allgather(rows))


# --- Shard by shard -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """A way to read the shards of an array, and how the error names it under jit."""

    key: str
    text: str
    program: Callable[[Any], Any]
    named: str


LOOKS: Mapping[str, Look] = table(
    Look(
        "addressable-shards",
        "x.addressable_shards[0].data",
        lambda x: x.addressable_shards[0].data,
        r"The 'addressable_shards' attribute is not available on traced array",
    ),
    Look(
        "addressable-data",
        "x.addressable_data(0)",
        lambda x: x.addressable_data(0),
        r"The addressable_data\(\) method was called on traced array",
    ),
    Look(
        "global-shards",
        "x.global_shards[0].data",
        lambda x: x.global_shards[0].data,
        r"The global_shards property was called on traced array",
    ),
)


@described("the first of this process's rows")
def first_row(place: Place) -> Any:
    return place.rows(WIDTH)[:1]


@family(
    "multi_controller.under-jit.{look}",
    look=LOOKS,
    claim="multi-process.addressable-shards-under-jit",
    title="`{look.text}` of an array that spans several processes, under `jax.jit`.",
    fact="multi_controller.under-jit",
    topologies=ONE_AND_SEVERAL,
    expect=lambda look: of_jax(
        steps(
            outside=returns(first_row),
            first_call=raises("ConcretizationTypeError", look.named, phase="trace"),
            second_call=raises("ConcretizationTypeError", look.named, phase="trace"),
        )
    ),
)
def under_jit(impl: Implementation, cluster: Cluster, look: Look) -> None:
    """A read of the shards outside of jit, which works, and under it."""
    array = over_all(cluster)
    read = LOOKS["addressable-data"] if look.key == "global-shards" else look
    cluster.step("outside", lambda: np.asarray(read.program(array)))
    function = jax.jit(lambda x: look.program(x))
    cluster.twice(function, array)


@DEFAULTS.clause(
    "multi_controller.shards.alone",
    claim="multi-process.addressable-shards-in-some-processes",
    expect=of_jax(
        steps(
            alone=returns(
                lambda place: [] if place.process else list(place.rows(WIDTH)[:, None]),
                text="process 0's rows, in it alone",
            ),
            together=returns(lambda place: place.all_rows(WIDTH).sum(), text="the sum of all rows"),
        )
    ),
)
def shards_alone(impl: Implementation, cluster: Cluster) -> None:
    """Process 0 alone reads its shards, and the next program of all processes works."""
    array = over_all(cluster)
    cluster.step("alone", lambda: local_parts(array) if cluster.process == 0 else [])
    cluster.step("together", lambda: array.sum())
