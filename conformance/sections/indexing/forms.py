"""Every way to read an output but an integer index: slices, fancy indices, iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.indexing import Form
from conformance.spec.family import table


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
