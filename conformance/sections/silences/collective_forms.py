"""The collectives and arguments of which no document gives an example, each beside its model.

Those of whole arrays are in rewriting.collective_models. Here are the others of jax.lax, trees,
other dtypes, dimensions other than the first, and values that are equal on all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.comparing import Model
from conformance.spec.family import table
from conformance.spec.topology import Place

lax = jax.lax
Rows = NDArray[Any]

COUNT = 8  # devices
WHOLE = "pmap-silence.collectives"
TILED = "pmap-silence.tiled-collectives"


@dataclass(frozen=True, slots=True)
class Form:
    """A collective: `apply` of a device's block of this shape, and of the stack the `model`.

    A model gives the collective's tree. With `whole` the body is given the same
    numbers on all devices besides.
    """

    key: str
    text: str
    apply: Callable[..., Any]
    model: Callable[[Rows], Any]
    shape: tuple[int, ...] = ()
    whole: bool = False
    claim: str = WHOLE

    def expected(self) -> Model:
        """Return the model of each device's result."""

        def model(place: Place) -> Any:
            return self.model(place.all_rows(*self.shape))

        return model


def to_all(value: Any) -> Rows:
    """The same on every device."""
    value = np.asarray(value)
    return np.broadcast_to(value, (COUNT, *value.shape))


def onwards(by: int = 1) -> list[int]:
    """The device from which each one receives: the one before it."""
    return [(k - by) % COUNT for k in range(COUNT)]


REVERSED = [(k, COUNT - 1 - k) for k in range(COUNT)]
OF_WHOLE = np.float32(3)  # what an unmapped argument is

OTHERS: Mapping[str, Form] = table(
    Form(
        "pshuffle",
        "`pshuffle` to the next device",
        lambda x: lax.pshuffle(x, "i", onwards()),
        lambda a: np.roll(a, 1, 0),
    ),
    Form(
        "pswapaxes",
        "`pswapaxes` of the mapped axis and a dimension",
        lambda x: lax.pswapaxes(x, "i", 0),
        lambda a: a.swapaxes(0, 1),
        (COUNT,),
    ),
    Form(
        "pswapaxes-second",
        "`pswapaxes` of the mapped axis and the second dimension",
        lambda x: lax.pswapaxes(x, "i", 1),
        lambda a: a.swapaxes(0, 2),
        (2, COUNT),
    ),
    Form(
        "ppermute-nothing",
        "`ppermute` without pairs returns zeros",
        lambda x: lax.ppermute(x, "i", []),
        np.zeros_like,
        (2,),
    ),
    Form(
        "psum-booleans",
        "`psum` of booleans counts the true ones",
        lambda x: lax.psum(x > 3, "i"),
        lambda a: to_all((a > 3).sum().astype(np.int32)),
    ),
    Form(
        "pmean-integers",
        "`pmean` of integers returns a float",
        lambda x: lax.pmean(x.astype(int), "i"),
        lambda a: to_all(a.mean().astype(np.float32)),
    ),
    Form(
        "pmax-booleans",
        "`pmax` of booleans returns whether any is true",
        lambda x: (lax.pmax(x > 3, "i"), lax.pmax(x > 99, "i")),
        lambda a: (to_all((a > 3).any()), to_all((a > 99).any())),
    ),
    Form(
        "pmin-booleans",
        "`pmin` of booleans returns whether all are true",
        lambda x: (lax.pmin(x > 3, "i"), lax.pmin(x > 0, "i")),
        lambda a: (to_all((a > 3).all()), to_all((a > 0).all())),
    ),
    Form(
        "numbers",
        "`psum`, `pmean` and `pmax` of a Python number",
        lambda x: x * lax.psum(2, "i") + 10 * lax.pmean(3, "i") + lax.pmax(4, "i"),
        lambda a: a * 16 + 34,
    ),
    Form(
        "psum-twice",
        "`psum` of a `psum`",
        lambda x: lax.psum(lax.psum(x, "i"), "i"),
        lambda a: to_all(a.sum(0) * COUNT),
        (2,),
    ),
    Form(
        "psum-of-pmean",
        "`psum` of a `pmean` of a `pmax`",
        lambda x: lax.psum(lax.pmean(lax.pmax(x, "i"), "i"), "i"),
        lambda a: to_all(a.max(0) * COUNT),
        (2,),
    ),
    Form(
        "all-gather-last",
        "`all_gather` along a new last dimension",
        lambda x: lax.all_gather(x, "i", axis=-1),
        lambda a: to_all(a.T),
        (2,),
    ),
    Form(
        "all-to-all-across",
        "`all_to_all` that splits the second dimension and stacks along the first",
        lambda x: lax.all_to_all(x, "i", 1, 0),
        lambda a: a.transpose(2, 0, 1),
        (2, COUNT),
    ),
    Form(
        "psum-scatter-second",
        "`psum_scatter` of the second dimension",
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
        lambda a: a.sum(0).T,
        (2, COUNT),
    ),
)


def halves(model: Callable[[Rows], Rows]) -> Callable[[Rows], Any]:
    """The tree of the block and of ten times it."""
    return lambda a: {"a": model(a), "b": (model(a * 10), None)}


def tree_of(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A collective of a tree of two leaves, one of them in a tuple with nothing beside it."""
    return lambda x: apply({"a": x, "b": (x * 10, None)})


TREES: Mapping[str, Form] = table(
    Form(
        "psum-tree",
        "`psum` of a pytree of several dtypes",
        lambda x: lax.psum({"a": x, "b": (x.astype(int), None, x > 3)}, "i"),
        lambda a: {
            "a": to_all(a.sum()),
            "b": (
                to_all(a.sum().astype(np.int32)),
                None,
                to_all((a > 3).sum().astype(np.int32)),
            ),
        },
    ),
    Form(
        "pmean-tree",
        "`pmean` of a pytree",
        tree_of(lambda t: lax.pmean(t, "i")),
        halves(lambda a: to_all(a.mean(0))),
        (2,),
    ),
    Form(
        "pmax-tree",
        "`pmax` of a pytree",
        tree_of(lambda t: lax.pmax(t, "i")),
        halves(lambda a: to_all(a.max(0))),
        (2,),
    ),
    Form(
        "pmin-tree",
        "`pmin` of a pytree",
        tree_of(lambda t: lax.pmin(t, "i")),
        halves(lambda a: to_all(a.min(0))),
        (2,),
    ),
    Form(
        "all-gather-tree",
        "`all_gather` of a pytree",
        tree_of(lambda t: lax.all_gather(t, "i")),
        halves(to_all),
        (2,),
    ),
    Form(
        "ppermute-tree",
        "`ppermute` of a pytree, in reverse order",
        tree_of(lambda t: lax.ppermute(t, "i", REVERSED)),
        halves(lambda a: a[::-1]),
        (2,),
    ),
    Form(
        "pshuffle-tree",
        "`pshuffle` of a pytree",
        tree_of(lambda t: lax.pshuffle(t, "i", onwards(3))),
        halves(lambda a: np.roll(a, 3, 0)),
        (2,),
    ),
    Form(
        "all-to-all-tree",
        "`all_to_all` of a pytree",
        tree_of(lambda t: lax.all_to_all(t, "i", 0, 0)),
        halves(lambda a: a.swapaxes(0, 1)),
        (COUNT,),
    ),
    Form(
        "pswapaxes-tree",
        "`pswapaxes` of a pytree",
        tree_of(lambda t: lax.pswapaxes(t, "i", 0)),
        halves(lambda a: a.swapaxes(0, 1)),
        (COUNT,),
    ),
    Form(
        "psum-scatter-tree",
        "`psum_scatter` of a pytree",
        tree_of(lambda t: lax.psum_scatter(t, "i")),
        halves(lambda a: a.sum(0)),
        (COUNT,),
    ),
)

TILES: Mapping[str, Form] = table(
    Form(
        "all-gather-tiled-second",
        "`all_gather`, tiled, along the second dimension",
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        lambda a: to_all(np.concatenate(list(a), 1)),
        (2, 2),
        claim=TILED,
    ),
    Form(
        "all-to-all-tiled-across",
        "`all_to_all`, tiled, that splits the second dimension and joins along the first",
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda a: np.stack([a[:, :, 2 * k : 2 * k + 2].reshape(-1, 2) for k in range(COUNT)]),
        (3, 2 * COUNT),
        claim=TILED,
    ),
    Form(
        "all-to-all-tiled-same",
        "`all_to_all`, tiled, that splits and joins one dimension",
        lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        lambda a: np.stack([a[:, 2 * k : 2 * k + 2].reshape(-1) for k in range(COUNT)]),
        (2 * COUNT,),
        claim=TILED,
    ),
    Form(
        "psum-scatter-tiled-second",
        "`psum_scatter`, tiled, of the second dimension",
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda a: np.stack(np.split(a.sum(0), COUNT, 1)),
        (3, 2 * COUNT),
        claim=TILED,
    ),
    Form(
        "psum-scatter-tiled-several",
        "`psum_scatter`, tiled, of several rows each",
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        lambda a: a.sum(0).reshape(COUNT, 2),
        (2 * COUNT,),
        claim=TILED,
    ),
    Form(
        "all-gather-tiled-tree",
        "`all_gather`, tiled, of a pytree",
        tree_of(lambda t: lax.all_gather(t, "i", tiled=True)),
        halves(lambda a: to_all(a.reshape(-1))),
        (2,),
        claim=TILED,
    ),
)

# Unmapped arguments are equal on all devices: shard_map's types say so, pmap's do not.
WHOLES: Mapping[str, Form] = table(
    Form(
        "psum-whole",
        "`psum` of an unmapped argument",
        lambda x, y: x + lax.psum(y, "i"),
        lambda a: a + COUNT * OF_WHOLE,
        whole=True,
    ),
    Form(
        "pmean-whole",
        "`pmean` of an unmapped argument",
        lambda x, y: x + lax.pmean(y, "i"),
        lambda a: a + OF_WHOLE,
        whole=True,
    ),
    Form(
        "pmax-whole",
        "`pmax` and `pmin` of an unmapped argument",
        lambda x, y: x + lax.pmax(y, "i") + 10 * lax.pmin(y, "i"),
        lambda a: a + 11 * OF_WHOLE,
        whole=True,
    ),
    Form(
        "all-gather-whole",
        "`all_gather` of an unmapped argument",
        lambda x, y: x + lax.all_gather(y, "i"),
        lambda a: a[:, None] + np.full(COUNT, OF_WHOLE),
        whole=True,
    ),
    Form(
        "ppermute-whole",
        "`ppermute` of an unmapped argument",
        lambda x, y: x + lax.ppermute(y, "i", [(0, 1)]),
        lambda a: a + OF_WHOLE * (np.arange(COUNT) == 1).astype(np.float32),
        whole=True,
    ),
    Form(
        "psum-constant",
        "`psum` of a constant in the body",
        lambda x: x + lax.psum(jax.numpy.float32(5), "i"),
        lambda a: a + 40,
    ),
)

FORMS: Mapping[str, Form] = {**OTHERS, **TREES, **TILES, **WHOLES}
