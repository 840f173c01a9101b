"""The replacements over the devices of all processes: one global array in place of a local one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from conformance.sections.drop_in import AXIS, put_replicated, put_sharded
from conformance.spec.clause import processes
from conformance.spec.columns import of_jax
from conformance.spec.expectation import along, every, raises, returns, sharded, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.replacements-prng-keys-and-errors"
WIDTH = 3


@described("this process's rows")
def own_rows(place: Place) -> Any:
    return place.rows(WIDTH)


@described("a copy of the value for each of this process's devices")
def copies(place: Place) -> Any:
    return np.stack([place.all_rows(WIDTH)[0]] * place.topology.devices_per_process)


def placed(values: Expectation) -> Expectation:
    """These values, sharded over all devices."""
    return twice(every(values, sharded("NamedSharding over all devices", along(AXIS))))


@dataclass(frozen=True, slots=True)
class Way:
    """The argument that each process passes to a replacement over the devices of all processes."""

    key: str
    text: str
    call: Callable[[Cluster], Any]
    expected: Expectation


WAYS: Mapping[str, Way] = table(
    Way(
        "replicated",
        "the same value from each process, replicated",
        lambda cluster: put_replicated(cluster.all_rows(WIDTH)[0], cluster.devices, jnp.stack),
        placed(returns(copies)),
    ),
    Way(
        "sharded",
        "the same list of all shards from each process",
        lambda cluster: put_sharded(list(cluster.all_rows(WIDTH)), cluster.devices, jnp.stack),
        placed(returns(own_rows)),
    ),
    Way(
        "own-shards",
        "a list of its own devices' shards from each process",
        lambda cluster: put_sharded(list(cluster.rows(WIDTH)), cluster.devices, jnp.stack),
        twice(raises(ValueError, "divisible|evenly divide", otherwise=own_rows)),
    ),
)


@family(
    "drop_in.all-processes.{way}",
    way=WAYS,
    claim=CLAIM,
    title="A replacement over the devices of all processes gets {way.text}.",
    fact="drop_in.all-processes",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=lambda way: of_jax(way.expected),
)
def over_all(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """The replacement, twice."""
    cluster.twice(way.call, cluster)
