"""Every other way to read an output: slices, fancy indices, iteration, the host's own.

The document speaks of integer indices only. Here legacy decides what leaves the devices, and the
size of the result how much there is to move between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.family import family, table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS
from conformance.judging.expectation import Expectation
from conformance.sections.indexing import (
    BOUNCES,
    STAYS,
    Form,
    access,
    accessed,
    moves_at_most_its_result,
    output,
)

FETCH = "fetch"  # the sort that goes through the host by what it is


def _backwards(x: Any) -> list[Any]:
    return list(reversed(x))


FORMS: Mapping[str, Form] = table(
    Form("whole", "`x[:]`", lambda x: x[:], split=True, sort="all"),
    Form("dots", "`x[...]`", lambda x: x[...], split=True, sort="all"),
    Form("one", "`x[0:1]`", lambda x: x[0:1], sort="slice"),
    Form("first", "`x[:1]`", lambda x: x[:1], bounces=True, sort="slice"),
    Form("rest", "`x[1:]`", lambda x: x[1:], bounces=True, sort="slice"),
    Form("stride", "`x[::2]`", lambda x: x[::2], bounces=True, sort="slice"),
    Form(
        "fancy", "`x[np.array([0, 1])]`", lambda x: x[np.array([0, 1])], bounces=True, sort="fancy"
    ),
    Form(
        "mask",
        "`x[mask]`, every other row",
        lambda x: x[np.arange(x.shape[0]) % 2 == 0],
        bounces=True,
        sort="fancy",
    ),
    Form("element", "`x[0, 1]`", lambda x: x[0, 1], bounces=True, sort="element"),
    Form("ellipsis", "`x[0, ...]`", lambda x: x[0, ...], bounces=True, sort="element"),
    Form("column", "`x[:, 0]`", lambda x: x[:, 0], bounces=True, split=True, sort="column"),
    Form("iteration", "`list(x)`", list, loops=True, sort="iteration"),
    Form("reversed", "`list(reversed(x))`", _backwards, loops=True, sort="iteration"),
    Form(
        "loop",
        "`x[i]` for each row",
        lambda x: [x[i] for i in range(len(x))],
        loops=True,
        sort="iteration",
    ),
    Form(
        "unstack",
        "`jnp.unstack(x)`",
        lambda x: list(jnp.unstack(x)),
        list,
        bounces=True,
        sort="unstack",
    ),
    Form(
        "at-get",
        "`x.at[0].get()`",
        lambda x: x.at[0].get(),
        lambda x: x[0],
        bounces=True,
        sort="at-get",
    ),
    Form(
        "at-get-rest",
        "`x.at[1:].get()`",
        lambda x: x.at[1:].get(),
        lambda x: x[1:],
        bounces=True,
        sort="at-get",
    ),
    Form(
        "take",
        "`jnp.take(x, 0, axis=0)`",
        lambda x: jnp.take(x, 0, axis=0),
        lambda x: x[0],
        bounces=True,
        sort="take",
    ),
    Form(
        "index-in-dim",
        "`jax.lax.index_in_dim(x, 0)`",
        lambda x: jax.lax.index_in_dim(x, 0),
        lambda x: x[:1],
        bounces=True,
        sort="take",
    ),
    Form(
        "dynamic-index",
        "`jax.lax.dynamic_index_in_dim(x, 0)`",
        lambda x: jax.lax.dynamic_index_in_dim(x, 0),
        lambda x: x[:1],
        bounces=True,
        sort="take",
    ),
    Form("jit-rest", "`x[1:]` under jit", lambda x: x[1:], jitted=True, bounces=True, sort="slice"),
    Form(
        "jit-column",
        "`x[:, 0]` under jit",
        lambda x: x[:, 0],
        jitted=True,
        bounces=True,
        split=True,
        sort="column",
    ),
    Form("jit-iteration", "`list(x)` under jit", list, jitted=True, bounces=True, sort="unstack"),
    Form(
        "jit-unstack",
        "`jnp.unstack(x)` under jit",
        lambda x: list(jnp.unstack(x)),
        list,
        jitted=True,
        bounces=True,
        sort="unstack",
    ),
    Form(
        "jit-fancy",
        "`x[[0, 1]]` under jit",
        lambda x: x[np.array([0, 1])],
        jitted=True,
        bounces=True,
        sort="fancy",
    ),
)

FEW_ROWS = "a process of four has but two rows, and cannot fetch an array of all processes"
IN_ONE_PROCESS: Mapping[str, Form] = table(
    Form("pair", "`x[:2]`", lambda x: x[:2], bounces=True, sort="slice"),
    Form("asarray", "`np.asarray(x)[0]`", lambda x: np.asarray(x)[0], bounces=True, sort=FETCH),
    Form(
        "device-get",
        "`jax.device_get(x)[0]`",
        lambda x: jax.device_get(x)[0],
        lambda x: x[0],
        bounces=True,
        sort=FETCH,
    ),
)


def moderate(form: Form) -> Expectation:
    """No more between devices than the result has, and off them only where legacy is."""
    if form.sort == FETCH:  # the control: where this did not show, no other access would
        return BOUNCES
    return moves_at_most_its_result(form.bounces)


@family(
    "indexing.access.{form}",
    form={**FORMS, **IN_ONE_PROCESS},
    claim="pmap-silence.access-cost",
    title="{form.text} moves no more than it has to.",
    fact=lambda form: f"indexing.access.{form.sort}",
    topologies=lambda form: ONE_PROCESS if form.key in IN_ONE_PROCESS else ONE_AND_FOUR,
    left_out=lambda form: FEW_ROWS if form.key in IN_ONE_PROCESS else "",
    expect={
        LEGACY_PMAP: lambda form: accessed(
            BOUNCES if form.bounces else STAYS, form.right(LEGACY_PMAP)
        ),
        NEW_PMAP: lambda form: accessed(moderate(form), form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(moderate(form), form.right(SHARD_MAP)),
    },
)
def read(impl: Any, cluster: Any, form: Form) -> None:
    """A map's output, read in one of the forms."""
    access(cluster, "access", form, output(impl, cluster))
