"""Wrong calls that the originals refuse: the replacements must raise an equally useful error of the
same type.

The document promises to reproduce the originals' behaviour and does not mention wrong input. A
replacement that returns where the original raised hides a mistake in the caller's code. Where a
message was reworded, both texts are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.drop_in import (
    NP,
    ORIGINAL,
    SHARDED,
    SILENT,
    STACKINGS,
    Stacking,
)
from conformance.sections.drop_in.wrong_calls import (
    NO_OTHER_PROCESS,
    WIDTH,
    WRONG,
    Wrong,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import raises, returns, steps
from conformance.spec.family import family
from conformance.worker.protocols import Cluster, Implementation


@family(
    "drop_in.refusals.{wrong}{stacking}",
    wrong=WRONG,
    stacking=STACKINGS,
    only=lambda wrong, stacking: bool(wrong.by_np) or stacking is not NP,
    claim=SILENT,
    title="The replacement with {stacking.name}.stack is called wrongly: {wrong.title}.",
    needs=devices(8),
    left_out=NO_OTHER_PROCESS,
    expect=lambda wrong, stacking: of_jax(wrong.refusal(stacking)),
)
def refused(impl: Implementation, cluster: Cluster, wrong: Wrong, stacking: Stacking) -> None:
    """The right call of the replacement; then the wrong one, of it and of the original."""
    impl.select()
    there = cluster.local_devices
    rows = list(cluster.rows(WIDTH))
    replacement, original = wrong.function.replacement, wrong.function.original
    right = rows if wrong.function is SHARDED else rows[0]
    cluster.step("right call", replacement, right, there, stacking.stack)

    def call(put: Callable[..., Any], *more: Any) -> Any:
        # Made anew for each call, since a generator can be used only once.
        return put(wrong.argument(list(rows)), wrong.devices(there), *more)

    for step in ("replacement", "replacement again"):
        cluster.step(step, call, replacement, stacking.stack)
    if original is not None:
        cluster.step(ORIGINAL, call, original)


# --- Shards that are put one by one ---------------------------------------------------------------


def put_one_by_one(shards: Sequence[Any], there: Sequence[Any]) -> Any:
    """An array of shards, each put on its device."""
    pairs = zip(shards, there, strict=True)
    arrays = [jax.device_put(shard[None], device) for shard, device in pairs]
    sharding = NamedSharding(Mesh(np.array(there), ("i",)), P("i"))
    shape = (len(there), *shards[0].shape)
    return jax.make_array_from_single_device_arrays(shape, sharding, arrays)


@clause(
    "drop_in.refusals.put-one-by-one",
    claim=SILENT,
    title="Shards put on zip(shards, devices, strict=True) and joined by "
    "make_array_from_single_device_arrays: other numbers and dtypes of shards are refused.",
    fixes="drop_in.refusals.sharded.twice-the-shards",
    needs=devices(8),
    left_out=NO_OTHER_PROCESS,
    expect=of_jax(
        steps(
            one_each=returns(lambda place: place.rows(WIDTH), text="the shards"),
            twice_as_many=raises(ValueError, r"^zip\(\) argument 2 is shorter than argument 1$"),
            half_as_many=raises(ValueError, r"^zip\(\) argument 2 is longer than argument 1$"),
            of_two_dtypes=raises(
                ValueError,
                "^Input buffers to `Array` must have matching dtypes. Got int32, expected float32",
            ),
        )
    ),
)
def one_by_one(impl: Implementation, cluster: Cluster) -> None:
    """A shard for each device; then too many, too few, and the last of another dtype."""
    there = cluster.local_devices
    shards = list(cluster.rows(WIDTH))
    mixed = [*shards[:-1], shards[-1].astype(np.int32)]
    cluster.step("one each", put_one_by_one, shards, there)
    cluster.step("twice as many", put_one_by_one, shards * 2, there)
    cluster.step("half as many", put_one_by_one, shards[:4], there)
    cluster.step("of two dtypes", put_one_by_one, mixed, there)
