"""Many collectives in one program, each on what the one before gave, in a body and in a scan."""

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
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]

COUNT = 8  # devices
WIDTH = 3  # of a row
PRIME = 9973  # sums of eight numbers below it are exact in float32
NEXT = [(k, (k + 1) % COUNT) for k in range(COUNT)]


@dataclass(frozen=True, slots=True)
class Link:
    """A step of a chain: `apply` to a device's row, and what the `model` makes of all rows.

    It keeps the row's own numbers in the result, so that a link that is left out, or that pairs
    with another one, gives other numbers.
    """

    key: str
    text: str
    apply: Callable[[Any], Any]
    model: Callable[[Rows], Rows]


LINKS: Mapping[str, Link] = table(
    Link(
        "psum",
        "`psum`",
        lambda x: (2 * x + lax.psum(x, "i")) % PRIME,
        lambda a: (2 * a + a.sum(0)) % PRIME,
    ),
    Link(
        "ppermute",
        "`ppermute`",
        lambda x: (2 * x + lax.ppermute(x, "i", NEXT) + 1) % PRIME,
        lambda a: (2 * a + np.roll(a, 1, 0) + 1) % PRIME,
    ),
)


@dataclass(frozen=True, slots=True)
class Chain:
    """A number of links, one after the other or as the turns of a scan."""

    key: str
    text: str
    length: int
    scanned: bool = False

    def run(self, link: Link, x: Any) -> Any:
        """Return a device's row after all links."""
        if self.scanned:
            return lax.scan(lambda row, _: (link.apply(row), None), x, length=self.length)[0]
        for _ in range(self.length):
            x = link.apply(x)
        return x

    def expected(self, link: Link) -> Model:
        """Return the model of this process's rows after all links."""

        def model(place: Place) -> Any:
            rows = place.all_rows(WIDTH)
            for _ in range(self.length):
                rows = link.model(rows)
            return place.mine(rows)

        return model


CHAINS: Mapping[str, Chain] = table(
    Chain("8", "Eight chained {link}", 8),
    Chain("33", "33 chained {link}", 33),
    Chain("64", "64 chained {link}", 64),
    Chain("100", "100 chained {link}", 100),
    Chain("scan-33", "A scan of 33 chained {link}", 33, scanned=True),
    Chain("scan-1000", "A scan of 1000 chained {link}", 1000, scanned=True),
)


@family(
    "silences.chained.{link}.{chain}",
    link=LINKS,
    chain=CHAINS,
    claim="pmap-silence.collectives",
    title=lambda link, chain: f"{chain.text.format(link=link.text)} give what NumPy gives.",
    fact=lambda link, chain: f"silences.chained.{link.key}",
    needs=devices(COUNT),
    topologies=("1x8", "4x2"),
    expect=lambda link, chain: everywhere(
        twice(returns(chain.expected(link), text=f"all {chain.length} links, by NumPy"))
    ),
)
def chain_collectives(impl: Implementation, cluster: Cluster, link: Link, chain: Chain) -> None:
    """Collectives of rows, each on what the one before gave."""
    function = impl.map(lambda x: chain.run(link, x))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))
