"""Arguments of collectives in other forms: permutations that are no lists, negative dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]

COUNT = 8  # devices
SOURCES = list(range(COUNT))
TARGETS = [(3 * k + 1) % COUNT for k in range(COUNT)]  # whose inverse is another permutation
PAIRS = list(zip(SOURCES, TARGETS, strict=True))

DEFAULTS = Defaults(
    claim="pmap-silence.arguments-of-collectives",
    needs=devices(COUNT),
    left_out="how a collective reads its arguments does not depend on the number of processes",
)


@dataclass(frozen=True, slots=True)
class Form:
    """A collective: `apply` to a device's block of this shape, and to the stack the `model`."""

    key: str
    text: str
    apply: Callable[[Any], Any]
    model: Callable[[Rows], Rows]
    shape: tuple[int, ...]
    fixes: str | None = None

    def expected(self) -> Model:
        """Return the model of each device's result."""

        def model(place: Place) -> Any:
            return place.mine(self.model(place.all_rows(*self.shape)))

        return model


def permuted(perm: Callable[[], Any]) -> Callable[[Any], Any]:
    """Return a ppermute whose permutation is made anew in each trace: a zip can be read once."""
    return lambda x: lax.ppermute(x, "i", perm())


def moved(rows: Rows) -> Rows:
    """Each row on the device to which the permutation sends it."""
    found = np.empty_like(rows)
    found[TARGETS] = rows[SOURCES]
    return found


def scattered(rows: Rows) -> Rows:
    """The sum of the blocks, of which each device has its part of the columns."""
    return np.stack(np.split(rows.sum(0), COUNT, axis=-1))


def exchanged(rows: Rows) -> Rows:
    """The columns that each device sends to this one, beside each other in the order of devices."""
    parts = np.split(rows, COUNT, axis=-1)
    return np.stack([np.concatenate(list(part), axis=-1) for part in parts])


def gathered(rows: Rows) -> Rows:
    """The blocks of all devices beside each other, on each device."""
    whole = np.concatenate(list(rows), axis=-1)
    return np.broadcast_to(whole, (COUNT, *whole.shape))


FORMS: Mapping[str, Form] = table(
    Form(
        "permutation-zip",
        "`ppermute` with a zip as permutation",
        permuted(lambda: zip(SOURCES, TARGETS, strict=True)),
        moved,
        (3,),
    ),
    Form(
        "permutation-array",
        "`ppermute` with a NumPy array as permutation",
        permuted(lambda: np.array(PAIRS)),
        moved,
        (3,),
    ),
    Form(
        "permutation-generator",
        "`ppermute` with a generator as permutation",
        permuted(lambda: (pair for pair in PAIRS)),
        moved,
        (3,),
    ),
    Form(
        "permutation-lists",
        "`ppermute` with a list of lists as permutation",
        permuted(lambda: [list(pair) for pair in PAIRS]),
        moved,
        (3,),
    ),
    Form(
        "permutation-list-of-zip",
        "`ppermute` with a list made of a zip as permutation",
        permuted(lambda: list(zip(SOURCES, TARGETS, strict=True))),
        moved,
        (3,),
        fixes="silences.arguments-of-collectives.permutation-zip",
    ),
    Form(
        "psum-scatter-last",
        "`psum_scatter`, tiled, with scatter_dimension=-1",
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=-1, tiled=True),
        scattered,
        (3, 2 * COUNT),
    ),
    Form(
        "psum-scatter-numbered",
        "`psum_scatter`, tiled, with scatter_dimension=x.ndim - 1",
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=x.ndim - 1, tiled=True),
        scattered,
        (3, 2 * COUNT),
        fixes="silences.arguments-of-collectives.psum-scatter-last",
    ),
    Form(
        "all-to-all-last",
        "`all_to_all`, tiled, with -1 as both dimensions",
        lambda x: lax.all_to_all(x, "i", -1, -1, tiled=True),
        exchanged,
        (3, 2 * COUNT),
    ),
    Form(
        "all-to-all-numbered",
        "`all_to_all`, tiled, with x.ndim - 1 as both dimensions",
        lambda x: lax.all_to_all(x, "i", x.ndim - 1, x.ndim - 1, tiled=True),
        exchanged,
        (3, 2 * COUNT),
        fixes="silences.arguments-of-collectives.all-to-all-last",
    ),
    Form(
        "all-gather-last",
        "`all_gather`, tiled, with axis=-1",
        lambda x: lax.all_gather(x, "i", axis=-1, tiled=True),
        gathered,
        (3, 2),
    ),
)


@DEFAULTS.family(
    "silences.arguments-of-collectives.{form}",
    form=FORMS,
    title="{form.text} gives what NumPy gives.",
    expect=lambda form: everywhere(
        twice(returns(form.expected(), text=f"what NumPy gives for {form.text}"))
    ),
)
def collect(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A collective of blocks."""
    cluster.twice(impl.map(lambda x: form.apply(x)), impl.given(cluster.rows(*form.shape)))
