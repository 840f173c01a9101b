"""Data that must be equal in all processes and are not: with `device_put` and under `jit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from conformance.sections.multi_controller import WIDTH, local_parts, row_of, spread
from conformance.spec.clause import clause, processes
from conformance.spec.codes import Code, mistaken
from conformance.spec.columns import of_jax
from conformance.spec.expectation import OfEachStep, raises, returns, steps, twice
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.texts import described, text_of
from conformance.spec.topology import ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

MORE = 100  # by which each process's data are more than the data of the one before


def full(place: Place) -> Any:
    """All rows, in each process 100 more than in the one before."""
    return place.all_rows(WIDTH) + np.float32(MORE * place.process)


@described("this process's rows of its own data: one array of rows that no process was given")
def own_of_own(place: Place) -> Any:
    return list(place.mine(full(place))[:, None])


@described("a replicated array of which each process's copies are its own data")
def own_copies(place: Place) -> Any:
    return [full(place)] * place.topology.devices_per_process


@described("a replicated array of which each process's copies are of its own data")
def own_copies_doubled(place: Place) -> Any:
    return [2 * one for one in own_copies(place)]


def refused(error: str, pattern: str, taken: Any) -> OfEachStep:
    """An error in all processes; what was `taken` instead is said by name."""
    wanted, instead = raises(error, pattern), returns(taken)

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is None and instead.check_step(place, step)[0]:
            return False, mistaken(text_of(taken), str(step), Code.VALUE)
        return wanted.check_step(place, step)

    return replace(wanted, check_step=check_step)


@dataclass(frozen=True, slots=True)
class Given:
    """The sharding over all devices, and the result for data that differ between processes."""

    key: str
    text: str
    spec: tuple[str, ...]
    taken: Callable[[Place], Any]


GIVEN: Mapping[str, Given] = table(
    Given("sharded", "sharded by rows", ("a",), own_of_own),
    Given("replicated", "replicated", (), own_copies),
)


@family(
    "multi_controller.other-values.device-put-{given}",
    given=GIVEN,
    claim="multi-process.device-put-full-array",
    title="`device_put` of data that differ between processes, {given.text}",
    fact="multi_controller.other-values.device-put",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=lambda given: of_jax(
        twice(
            refused(
                "AssertionError",
                r"passed to device_put is not the same on each process\. .*Expected: .*; got: ",
                given.taken,
            )
        )
    ),
)
def put_others(impl: Implementation, cluster: Cluster, given: Given) -> None:
    """Every process gives `device_put` the full array, each another one."""
    sharding = spread(row_of(jax.devices()), *given.spec)
    cluster.twice(lambda: local_parts(jax.device_put(full(cluster), sharding)))


@clause(
    "multi_controller.other-values.jit-replicated",
    claim="multi-process.jit-same-values",
    fact="multi_controller.other-values.jit",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(
        twice(refused("AssertionError", r"not the same on each process", own_copies_doubled))
    ),
)
def jit_others(impl: Implementation, cluster: Cluster) -> None:
    """A jitted function over all devices gets a NumPy array that differs between processes."""
    sharding = spread(row_of(jax.devices()))
    function = jax.jit(lambda x: 2 * x, in_shardings=sharding, out_shardings=sharding)
    cluster.twice(lambda: local_parts(function(full(cluster))))


@described("this process's rows plus its own data: rows of two different programs in one array")
def own_added(place: Place) -> Any:
    return list((place.rows(WIDTH) + np.float32(MORE * place.process))[:, None])


@clause(
    "multi_controller.other-values.jit-beside-an-array",
    claim="multi-process.jit-same-values",
    fact="multi_controller.other-values.jit",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(twice(refused("AssertionError", r"not the same on each process", own_added))),
)
def jit_other_beside(impl: Implementation, cluster: Cluster) -> None:
    """A jitted function gets an array over all devices and, in each process, another number."""
    rows = jax.device_put(cluster.all_rows(WIDTH), spread(row_of(jax.devices()), "a"))
    number = np.float32(MORE * cluster.process)
    function = jax.jit(lambda x, n: x + n)
    cluster.twice(lambda: local_parts(function(rows, number)))


# --- As it should be ------------------------------------------------------------------------------


@described("this process's rows, doubled")
def doubled_rows(place: Place) -> Any:
    return list(2 * place.rows(WIDTH)[:, None])


@described("all rows, doubled, on each of this process's devices")
def doubled_everywhere(place: Place) -> Any:
    return [2 * place.all_rows(WIDTH)] * place.topology.devices_per_process


@clause(
    "multi_controller.same-values",
    claim="multi-process.jit-same-values",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        steps(put=returns(doubled_rows), replicated=returns(doubled_everywhere)),
    ),
)
def same_values(impl: Implementation, cluster: Cluster) -> None:
    """The same NumPy array in all processes, by `device_put` and as an argument under jit."""
    rows, mesh = cluster.all_rows(WIDTH), row_of(jax.devices())
    whole = spread(mesh)
    cluster.step("put", lambda: local_parts(2 * jax.device_put(rows, spread(mesh, "a"))))
    function = jax.jit(lambda x: 2 * x, in_shardings=whole, out_shardings=whole)
    cluster.step("replicated", lambda: local_parts(function(rows)))
