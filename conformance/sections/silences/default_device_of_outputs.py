"""Computations on an output under `jax.default_device`: the device on which they run.

Legacy pmap's ran on that device, as those on an array that no map returned. Programs so move an
evaluation to the CPU, while the map runs on GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.aspects import COMMITTED, DEVICES
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.combining import on_one_device
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.default-device-and-outputs", needs=devices(2), left_out=ONE_PROCESS_ALONE
)

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What is computed from an output, and what NumPy makes of the same rows."""

    key: str
    text: str
    compute: Callable[[Any], Any]
    by_numpy: Callable[[Rows], Any]

    def model(self, place: Place) -> Any:
        """NumPy's numbers."""
        return self.by_numpy(place.rows(WIDTH) * 2)


WORK: Mapping[str, Work] = table(
    Work("add", "`out + 1`", lambda out: out + 1, lambda a: a + 1),
    Work("sum", "`jnp.sum(out)`", jnp.sum, np.sum),
    Work("jit", "`jax.jit(f)(out)`", jax.jit(lambda out: out * 3), lambda a: a * 3),
    Work(
        "concatenate",
        "`jnp.concatenate([out, out])`",
        lambda out: jnp.concatenate([out, out]),
        lambda a: np.concatenate([a, a]),
    ),
)


def the_last(place: Place) -> int:
    return place.topology.devices - 1


ALONE = on_one_device("on the default device alone", the_last, committed=None, claims={DEVICES})
AS_LEGACY = on_one_device(
    "on the default device alone, not committed, as legacy's",
    the_last,
    committed=False,
    claims={COMMITTED, DEVICES},
)


def numbers_of(work: Work) -> Expectation:
    """NumPy's numbers."""
    return returns(work.model, text=f"what NumPy gives for {work.text}")


@DEFAULTS.family(
    "silences.default-device-of-outputs.{work}",
    work=WORK,
    title="Under jax.default_device, {work.text} of an output runs on that device.",
    fact="silences.default-device-of-outputs",
    expect=lambda work: everywhere(twice(every(numbers_of(work), AS_LEGACY))),
)
def computed(impl: Implementation, cluster: Cluster, work: Work) -> None:
    """A computation on an output, twice, while the last device is the default."""
    out = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    with jax.default_device(cluster.devices[-1]):
        cluster.twice(work.compute, out)


@DEFAULTS.family(
    "silences.default-device-of-outputs.{work}-of-a-copy",
    work=WORK,
    title="An output is put on a device by jax.device_put: {work.text} of it runs there.",
    fact="silences.default-device-of-outputs.copy",
    fixes=lambda work: f"silences.default-device-of-outputs.{work.key}",
    expect=lambda work: everywhere(twice(every(numbers_of(work), ALONE))),
)
def computed_of_a_copy(impl: Implementation, cluster: Cluster, work: Work) -> None:
    """The same of a copy of the output on that device, made within the block."""
    out, last = impl.map(double())(impl.given(cluster.rows(WIDTH))), cluster.devices[-1]
    with jax.default_device(last):
        cluster.twice(lambda: work.compute(jax.device_put(out, last)))
