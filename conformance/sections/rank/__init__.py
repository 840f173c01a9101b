"""The arguments that a mapped body sees, and functions that depend on their rank.

A pmap body sees one row without the mapped axis, a shard_map body a block that still has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from conformance.spec.expectation import noted
from conformance.spec.expected import Expectation
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation, Mapped
from conformance.worker.recording import FIRST_CALL, SECOND_CALL

SEEN = "shapes in the body"

# The reason why the other implementations are not tested: they have their own clause.
ABOUT_PMAP = "the statement is about pmap's body"
ABOUT_SHARD_MAP = "the statement is about shard_map's body"

P = jax.sharding.PartitionSpec
EACH_ROW = P("i")


def map_of_blocks(
    impl: Implementation, body: Body, in_specs: Any = EACH_ROW, out_specs: Any = EACH_ROW
) -> Mapped:
    """The body as it is under `jit(shard_map)` over all devices: its rank is not restored."""
    function = jax.shard_map(body, mesh=impl.mesh(), in_specs=in_specs, out_specs=out_specs)
    return impl.adopt(jax.jit(function), "jit(shard_map)")


def watch(cluster: Cluster, mapping: Callable[[Body], Any], body: Body, *args: Any) -> None:
    """Call a mapped `body` twice; note each time the shapes of its last argument.

    They are noted while the body is traced, because that is when a user's print shows them.
    """
    seen: list[list[int]] = []

    def watched(*given: Any) -> Any:
        shape = list(given[-1].shape)
        if shape not in seen:
            seen.append(shape)
        return body(*given)

    function = mapping(watched)
    for call in (FIRST_CALL, SECOND_CALL):
        cluster.step(call, function, *args)
        cluster.note(SEEN, list(seen))


def sees(*shape: int) -> Expectation:
    """Whenever the body is traced, its (last) argument has this shape."""
    return noted(SEEN, f"the body sees {shape}", lambda place, seen: seen == [list(shape)])
