"""Collectives with `axis_index_groups`: each group of devices by itself.

A model of a group's blocks is that of the collective; the groups are of neighbours, of devices
apart, of one device each, of all in another order, and of unequal sizes, which some can take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.family import family, table
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]
Indices = list[list[int]]

CLAIM = "pmap-silence.axis-index-groups"
COUNT = 8  # devices


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of devices over which a collective runs."""

    key: str
    text: str
    groups: tuple[tuple[int, ...], ...]

    @property
    def indices(self) -> Indices:
        """Return the groups as jax.lax expects them."""
        return [list(group) for group in self.groups]

    @property
    def equal(self) -> bool:
        """Return whether all groups have one size."""
        return len({len(group) for group in self.groups}) == 1


GROUPS: Mapping[str, Groups] = table(
    Groups("neighbours", "pairs of neighbours", ((0, 1), (2, 3), (4, 5), (6, 7))),
    Groups("apart", "every other device", ((0, 2, 4, 6), (1, 3, 5, 7))),
    Groups("turned", "all devices in one reordered group", ((7, 0, 6, 1, 5, 2, 4, 3),)),
    Groups("single", "each device alone", tuple((k,) for k in range(COUNT))),
    Groups("unequal", "groups of one, three and four", ((0,), (1, 2, 3), (4, 5, 6, 7))),
)


@dataclass(frozen=True, slots=True)
class Collective:
    """`apply` works on a device's block in these groups, `model` on the blocks of one group.

    Where `unequal` groups of several sizes will do. The block is of `sizes` of a group.
    """

    key: str
    text: str
    apply: Callable[[Any, Indices], Any]
    model: Callable[[Rows], Rows]
    unequal: bool = False
    sizes: int = 0

    def shape(self, groups: Groups) -> tuple[int, ...]:
        """A block's shape."""
        return (self.sizes * len(groups.groups[0]),) if self.sizes else (2,)

    def expected(self, groups: Groups, model: Callable[[Rows], Rows] | None = None) -> Model:
        """Return the model of this process's devices, each with the result of its group."""

        def modelled(place: Place) -> Any:
            blocks = place.all_rows(*self.shape(groups))
            whole: list[Any] = [None] * COUNT
            for group in groups.indices:
                for device, value in zip(group, (model or self.model)(blocks[group]), strict=True):
                    whole[device] = value
            return place.mine(np.stack(whole))

        return modelled


def to_each(value: Rows, like: Rows) -> Rows:
    """The same on every device of the group."""
    return np.broadcast_to(value, (len(like), *value.shape))


COLLECTIVES: Mapping[str, Collective] = table(
    Collective(
        "psum",
        "`psum`",
        lambda x, g: lax.psum(x, "i", axis_index_groups=g),
        lambda a: to_each(a.sum(0), a),
        unequal=True,
    ),
    Collective(
        "pmean",
        "`pmean`",
        lambda x, g: lax.pmean(x, "i", axis_index_groups=g),
        lambda a: to_each(a.mean(0), a),
        unequal=True,
    ),
    Collective(
        "pmax",
        "`pmax`",
        lambda x, g: lax.pmax(x, "i", axis_index_groups=g),
        lambda a: to_each(a.max(0), a),
        unequal=True,
    ),
    Collective(
        "pmin",
        "`pmin`",
        lambda x, g: lax.pmin(x, "i", axis_index_groups=g),
        lambda a: to_each(a.min(0), a),
        unequal=True,
    ),
    Collective(
        "psum-of-one",
        "`psum(1)`",
        lambda x, g: x + lax.psum(1, "i", axis_index_groups=g),
        lambda a: a + np.float32(len(a)),
        unequal=True,
    ),
    Collective(
        "all-gather",
        "`all_gather`",
        lambda x, g: lax.all_gather(x, "i", axis_index_groups=g),
        lambda a: to_each(a, a),
    ),
    Collective(
        "all-gather-tiled",
        "`all_gather`, tiled,",
        lambda x, g: lax.all_gather(x, "i", axis_index_groups=g, tiled=True),
        lambda a: to_each(a.reshape(-1), a),
    ),
    Collective(
        "psum-scatter",
        "`psum_scatter`",
        lambda x, g: lax.psum_scatter(x, "i", axis_index_groups=g),
        lambda a: a.sum(0),
        sizes=1,
    ),
    Collective(
        "psum-scatter-tiled",
        "`psum_scatter`, tiled,",
        lambda x, g: lax.psum_scatter(x, "i", axis_index_groups=g, tiled=True),
        lambda a: a.sum(0).reshape(len(a), 2),
        sizes=2,
    ),
    Collective(
        "all-to-all",
        "`all_to_all`",
        lambda x, g: lax.all_to_all(x, "i", 0, 0, axis_index_groups=g),
        lambda a: a.swapaxes(0, 1),
        sizes=1,
    ),
    Collective(
        "all-to-all-tiled",
        "`all_to_all`, tiled,",
        lambda x, g: lax.all_to_all(x, "i", 0, 0, axis_index_groups=g, tiled=True),
        lambda a: a.reshape(len(a), len(a), 2).swapaxes(0, 1).reshape(len(a), -1),
        sizes=2,
    ),
    Collective(
        "pswapaxes",
        "`pswapaxes`",
        lambda x, g: lax.pswapaxes(x, "i", 0, axis_index_groups=g),
        lambda a: a.swapaxes(0, 1),
        sizes=1,
    ),
)

# Named mistakes of a count and of a mean, in groups of several sizes.
BY_THE_FIRST = "the size of the first group taken for that of each"


def right(collective: Collective, groups: Groups) -> Any:
    """Each group's own result."""
    first = np.float32(len(groups.groups[0]))
    counted: Mapping[str, Callable[[Rows], Rows]] = {
        "pmean": lambda a: to_each(a.sum(0) / first, a),
        "psum-of-one": lambda a: a + first,
    }
    mistaken = None if groups.equal else counted.get(collective.key)
    return twice(
        returns(
            collective.expected(groups),
            text=f"{collective.text} of each group by itself",
            mistakes=mistaken and {BY_THE_FIRST: collective.expected(groups, mistaken)},
        )
    )


def several(collective: Collective, groups: Groups) -> bool:
    """Return whether it is tested in several processes too, with groups within and across them."""
    return groups.key == "apart" and collective.key in ("psum", "pmean", "all-gather", "all-to-all")


@family(
    "silences.groups.{collective}.{groups}.{check}",
    collective=COLLECTIVES,
    groups=GROUPS,
    check=CHECKS,
    only=lambda collective, groups: groups.equal or collective.unequal,
    claim=CLAIM,
    title="{collective.text} over {groups.text}{check.text}.",
    fact="silences.groups.{collective}",
    needs=devices(COUNT),
    topologies=lambda collective, groups, check: (
        ONE_AND_FOUR if several(collective, groups) and check.on else ONE_PROCESS
    ),
    left_out=lambda collective, groups, check: (
        ""
        if several(collective, groups) and check.on
        else "other tests cover groups in several processes"
    ),
    expect=lambda collective, groups, check: asked(everywhere(right(collective, groups)), check),
)
def grouped(
    impl: Implementation, cluster: Cluster, collective: Collective, groups: Groups, check: Check
) -> None:
    """A collective over groups of devices."""
    function = impl.map(lambda x: collective.apply(x, groups.indices), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(*collective.shape(groups))))


# --- Counting each group by its own size ----------------------------------------------------------

UNEQUAL = GROUPS["unequal"]
BY_ONES = Collective(
    "mean-by-ones",
    "A `psum` divided by a `psum` of ones that is an array",
    lambda x, g: (
        lax.psum(x, "i", axis_index_groups=g) / lax.psum(jnp.ones(()), "i", axis_index_groups=g)
    ),
    lambda a: to_each(a.mean(0), a),
    unequal=True,
)


@family(
    "silences.groups.mean-by-ones.{check}",
    check=CHECKS,
    claim=CLAIM,
    title="A `psum` divided by a `psum` of `jnp.ones(())` is the mean over "
    + f"{UNEQUAL.text}{{check.text}}.",
    fixes="silences.groups.pmean.unequal.{check}",
    needs=devices(COUNT),
    left_out="other tests cover groups in several processes",
    expect=lambda check: asked(everywhere(right(BY_ONES, UNEQUAL)), check),
)
def mean_by_ones(impl: Implementation, cluster: Cluster, check: Check) -> None:
    """The mean of each group, of which the count is a sum of an array: `psum(1)` is one of none."""
    groups = UNEQUAL.indices
    function = impl.map(lambda x: BY_ONES.apply(x, groups), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(*BY_ONES.shape(UNEQUAL))))


# --- Refused by legacy pmap -----------------------------------------------------------------------

COVER = "^axis_index_groups must cover all indices exactly once"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Groups that cannot be, of a collective, and legacy's error."""

    key: str
    text: str
    apply: Callable[[Any], Any]
    error: type[Exception]
    pattern: str
    phase: str = "trace"


REFUSALS: Mapping[str, Refusal] = table(
    Refusal(
        "device-twice",
        "`psum` over groups that list a device twice",
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2, 3], [3, 4, 5, 6]]),
        ValueError,
        COVER,
    ),
    Refusal(
        "no-such-device",
        "`psum` over groups that list a device that does not exist",
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 8]]),
        ValueError,
        COVER,
    ),
    Refusal(
        "left-out",
        "`pmax` over groups that leave devices out",
        lambda x: lax.pmax(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
        RuntimeError,
        "replica groups should contain 8",
        "compile",
    ),
    Refusal(
        "all-gather-unequal",
        "`all_gather` over groups of unequal sizes",
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3], [4, 5, 6, 7]]),
        ValueError,
        "^Cannot lower jaxpr with verifier errors:.*Invalid replica id -1",
        "lower",
    ),
    Refusal(
        "psum-scatter-unequal",
        "`psum_scatter` over groups of unequal sizes",
        lambda x: lax.psum_scatter(x[None], "i", axis_index_groups=[[0], [1, 2, 3], [4, 5, 6, 7]]),
        ValueError,
        "^Cannot lower jaxpr with verifier errors:.*Invalid replica id -1",
        "lower",
    ),
)


@family(
    "silences.groups-refused.{refusal}.{check}",
    refusal=REFUSALS,
    check=CHECKS,
    claim=CLAIM,
    title="{refusal.text}{check.text} is refused.",
    fact="silences.groups-refused.{refusal}",
    needs=devices(COUNT),
    left_out="the result does not depend on the number of processes",
    expect=lambda refusal, check: asked(
        everywhere(twice(raises(refusal.error, refusal.pattern, phase=refusal.phase))), check
    ),
)
def refuse(impl: Implementation, cluster: Cluster, refusal: Refusal, check: Check) -> None:
    """Groups that cannot be."""
    function = impl.map(lambda x: refusal.apply(x), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows()))
