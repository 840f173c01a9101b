"""Wrong calls that the originals refuse: the replacements must raise an equally useful error of the
same type.

The document promises to reproduce the originals' behaviour and does not mention wrong input. A
replacement that returns where the original raised hides a mistake in the caller's code. Where a
message was reworded, both texts are listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
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
